import type { SandboxBackendOptions } from '../sandbox-backend.js';

/** Configuration of the docker backend. */
export interface DockerBackendOptions extends SandboxBackendOptions {
  /** `unix:///path` or `tcp://host:port`; null: the engine's default socket. */
  dockerHost: string | null;
  /** Image of sandboxes whose specification names none. */
  defaultImage: string;
  /**
   * A network of the engine that the service itself is in: sandboxes join it, are reached by name and publish no port.
   * Null: ports are published, and sandboxes have a network that connects none of them with another one.
   */
  network: string | null;
  /** Maximum number of processes and threads in a sandbox. */
  pidsLimit: number;
  /** Processors of a sandbox whose specification sets none. */
  cpu: number;
  /** Mebibytes, likewise. */
  memoryMb: number;
  /** With less free space on the engine's disk no sandbox starts, and one that fills it is ended, where that can be seen from here. */
  minFreeBytes: number;
  /** What the volume of one sandbox may take; 0: any amount. */
  sandboxBytes: number;
  /** The service's variables that sandboxes may see; of these a container gets those that name a proxy. */
  environment: Readonly<Record<string, string>>;
  /** How long a program may take to end after SIGTERM, seconds. */
  graceSeconds: number;
}
