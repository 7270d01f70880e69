import { GRACE_SECONDS, type SandboxBackendOptions } from '../sandbox-backend.js';
import type { SandboxBackendDescriptor } from '../sandbox-backend.descriptor.js';

export interface DockerBackendOptions extends SandboxBackendOptions {
  /** `unix:///path` or `tcp://host:port`; null is the engine's default socket. */
  dockerHost: string | null;
  defaultImage: string;
  /** A network of the service's containers, which reach sandboxes by name. Null publishes ports instead. */
  network: string | null;
  /** The range of the networks by which they do. */
  subnets: string;
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

const MEBIBYTE = 1024 * 1024;

export const dockerBackend = {
  kind: 'docker',
  hostBound: true,
  runsContainers: true,
  serviceHost: ({ dockerNetwork, ownHostname }) =>
    dockerNetwork === null ? 'host.docker.internal' : ownHostname,
  cutOffFromLoopback: ({ dockerNetwork }) => (dockerNetwork === null ? 'containers' : null),
  create: async ({ sandboxes, instanceId, defaults }) => {
    const { DockerSandboxBackend } = await import('./docker.backend.js');
    return new DockerSandboxBackend({
      dockerHost: sandboxes.dockerHost,
      instanceId,
      listenAddress: sandboxes.address,
      defaultImage: sandboxes.image,
      network: sandboxes.dockerNetwork,
      subnets: sandboxes.dockerSubnets,
      pidsLimit: sandboxes.processes,
      ...defaults,
      minFreeBytes: sandboxes.diskReserveMb * MEBIBYTE,
      sandboxBytes: sandboxes.diskMb * MEBIBYTE,
      environment: sandboxes.environment,
      graceSeconds: GRACE_SECONDS,
    });
  },
} as const satisfies SandboxBackendDescriptor;
