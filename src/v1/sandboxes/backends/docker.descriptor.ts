import { GRACE_SECONDS } from '@slipway/sandboxes/sandbox-backend.js';
import type { SandboxBackendDescriptor } from './sandbox-backend.descriptor.js';

const MEBIBYTE = 1024 * 1024;

export const dockerBackend = {
  kind: 'docker',
  hostBound: true,
  runsContainers: true,
  serviceHost: ({ dockerNetwork, ownHostname }) =>
    dockerNetwork === null ? 'host.docker.internal' : ownHostname,
  cutOffFromLoopback: ({ dockerNetwork }) => (dockerNetwork === null ? 'containers' : null),
  create: async ({ sandboxes, instanceId, defaults }) => {
    const { DockerSandboxBackend } = await import('@slipway/sandboxes/docker/docker.backend.js');
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
