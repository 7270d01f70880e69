import type { EgressConfig } from '../../../config/egress-config.js';
import type { SandboxConfig } from '../../../config/sandbox-config.js';
import type { SandboxBackend, SandboxBackendKind } from '@slipway/sandboxes/sandbox-backend.js';

export interface ServicePlace {
  host: string | null;
  ownHostname: string;
  /** `SANDBOX_ADDRESS`, else an address of the machine or pod; null when only loopback exists. */
  ownAddress: string | null;
  dockerNetwork: string | null;
}

interface ProxyPlace {
  dataDir: string;
  port: number;
  dockerNetwork: string | null;
  /** Where the service listens, as the proxy beside it reaches it. */
  serviceAddress: string;
}

interface SandboxBackendSetup {
  sandboxes: SandboxConfig;
  egress: EgressConfig;
  dataDir: string;
  instanceId: string;
  hostId: string;
  /** Known once the service listens. */
  callbackUrl: () => string;
  defaults: { cpu: number; memoryMb: number };
  /** Destinations that are not public and that sandboxes may still reach. */
  allow: readonly string[];
  hiddenPaths: readonly string[];
}

export interface SandboxBackendDescriptor {
  readonly kind: SandboxBackendKind;
  /** Whether a sandbox belongs to the machine that started it. If not, every replica looks after all of them. */
  readonly hostBound: boolean;
  readonly runsContainers: boolean;
  readonly serviceHost: (place: ServicePlace) => string;
  /** The name of its sandboxes in errors if they cannot reach a service on loopback; null if they can. */
  readonly cutOffFromLoopback: (place: ServicePlace) => string | null;
  /** Variables that say where the egress proxy of this replica listens; null where it is no program of the replica. */
  readonly proxyEnvironment: ((place: ProxyPlace) => Promise<Record<string, string>>) | null;
  readonly create: (setup: SandboxBackendSetup) => Promise<SandboxBackend>;
}
