import type { SandboxBackendOptions } from '../sandbox-backend.js';

export interface DockerBackendOptions extends SandboxBackendOptions {
  /** `unix:///path` or `tcp://host:port`; null is the engine's default socket. */
  dockerHost: string | null;
  defaultImage: string;
  /** A network of the service's containers, which reach sandboxes by name. Null publishes ports instead. */
  network: string | null;
  /** The range of the networks by which they do. */
  subnets: string;
  /** A folder of the service that the engine sees, for sockets to sandboxes that have an egress proxy. */
  socketFolder: string;
  pidsLimit: number;
  cpu: number;
  /** Mebibytes of a sandbox whose specification sets none. */
  memoryMb: number;
  minFreeBytes: number;
  /** The most that the volume of one sandbox may take; 0 means any amount. */
  sandboxBytes: number;
  environment: Readonly<Record<string, string>>;
  graceSeconds: number;
}
