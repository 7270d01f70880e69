import type { SandboxBackendOptions } from '../sandbox-backend.js';

/** The image that `npm run image:agent-server` makes. It is built here, never pulled: a registry could have anything under that name. */
export const DEFAULT_AGENT_IMAGE = 'slipway-agent-server';

/** What the docker backend is told by the configuration. */
export interface DockerBackendOptions extends SandboxBackendOptions {
  /** `unix:///path` or `tcp://host:port`; null: the engine's default socket. */
  dockerHost: string | null;
  /** Image of sandboxes whose specification names none. */
  defaultImage: string;
  /**
   * A network of the engine that the service itself is in: sandboxes join it, are reached by name and publish no port.
   * Null: ports are published.
   */
  network: string | null;
  /** Most processes and threads of a sandbox. */
  pidsLimit: number;
  /** Processors of a sandbox whose specification says nothing. */
  cpu: number;
  /** Mebibytes, likewise. */
  memoryMb: number;
  /** Nothing is started with less free space than this on the engine's disk, where that can be seen from here. */
  minFreeBytes: number;
  /** The service's variables that sandboxes may know: of these a container gets what names a proxy. */
  environment: Readonly<Record<string, string>>;
  /** How long a program may take to end after SIGTERM, seconds. */
  graceSeconds: number;
}
