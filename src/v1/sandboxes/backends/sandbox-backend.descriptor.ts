import type { SandboxConfig } from '../../../config/sandbox-config.js';
import type { SandboxBackend, SandboxBackendKind } from './sandbox-backend.js';

/** Enough for a step of the agent, and for its webhooks, to end. */
export const GRACE_SECONDS = 10;

/** Where the service is. */
export interface ServicePlace {
  /** Where it listens; null: on all addresses. */
  host: string | null;
  /** Host name of the machine, or of the container that the service runs in. */
  ownHostname: string;
  /** `SANDBOX_ADDRESS`, else an address of the machine or of the service's own pod; null: it has none but loopback. */
  ownAddress: string | null;
  dockerNetwork: string | null;
}

/** What a backend makes its options of. */
export interface SandboxBackendSetup {
  sandboxes: SandboxConfig;
  dataDir: string;
  instanceId: string;
  hostId: string;
  /** How sandboxes reach the service, once it listens. */
  callbackUrl: () => string;
  /** What a sandbox gets unless its specification says otherwise. */
  defaults: { cpu: number; memoryMb: number };
  /** Destinations that are not public and that sandboxes reach nevertheless. */
  allow: readonly string[];
  /** What of this machine no sandbox may see: the service's data and home, and ways into the database. */
  hiddenPaths: readonly string[];
}

/** What is known of a kind of backend before it is loaded. */
export interface SandboxBackendDescriptor {
  readonly kind: SandboxBackendKind;
  /** Whether a sandbox belongs to the machine that it was started on. If not, every replica looks after all of them. */
  readonly hostBound: boolean;
  /** Whether images have an effect, and the runtimes and networks of containers. */
  readonly runsContainers: boolean;
  /** Host at which sandboxes reach the service. */
  readonly serviceHost: (place: ServicePlace) => string;
  /** What its sandboxes are called where they do not reach a service that listens on loopback; null: they do. */
  readonly cutOffFromLoopback: (place: ServicePlace) => string | null;
  readonly create: (setup: SandboxBackendSetup) => Promise<SandboxBackend>;
}
