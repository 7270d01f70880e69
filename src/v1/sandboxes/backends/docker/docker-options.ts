import type { SandboxBackendOptions } from '../sandbox-backend.js';

export interface DockerBackendOptions extends SandboxBackendOptions {
  /** `unix:///path` or `tcp://host:port`; null is the engine's default socket. */
  dockerHost: string | null;
  defaultImage: string;
  /** A network that the service is in too: sandboxes are reached by name there. Null publishes ports instead. */
  network: string | null;
  pidsLimit: number;
  cpu: number;
  /** Mebibytes of a sandbox whose specification sets none. */
  memoryMb: number;
  /** Below this no sandbox starts, and one that fills the disk is ended, where the engine's disk is visible to us. */
  minFreeBytes: number;
  /** The most that the volume of one sandbox may take; 0 means any amount. */
  sandboxBytes: number;
  /** The service's variables; a container gets those that name a proxy. */
  environment: Readonly<Record<string, string>>;
  graceSeconds: number;
}
