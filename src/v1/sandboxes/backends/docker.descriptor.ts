import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { GRACE_SECONDS } from '@slipway/sandboxes/sandbox-backend.js';
import type { SandboxBackendDescriptor } from './sandbox-backend.descriptor.js';

const MEBIBYTE = 1024 * 1024;

/** The machine, as containers know it. */
const HOST = 'host.docker.internal';

/** By a path without links. It is made where it is needed: most services have no rules, and some no folder to write to. */
async function socketFolder(dataDir: string): Promise<string> {
  const folder = path.resolve(dataDir);
  return path.join(await realpath(folder).catch(() => folder), 'sockets');
}

export const dockerBackend = {
  kind: 'docker',
  hostBound: true,
  runsContainers: true,
  serviceHost: ({ dockerNetwork, ownHostname }) => (dockerNetwork === null ? HOST : ownHostname),
  cutOffFromLoopback: ({ dockerNetwork }) => (dockerNetwork === null ? 'containers' : null),
  proxyEnvironment: async ({ dataDir, dockerNetwork, serviceAddress }) => {
    const { newProxySocket } = await import('@slipway/sandboxes/docker/sandbox-relays.js');
    return {
      EGRESS_PROXY_LISTEN: `unix:${await newProxySocket(await socketFolder(dataDir))}`,
      // A name of containers alone.
      ...(dockerNetwork === null && { EGRESS_PROXY_HOSTS: `${HOST}=${serviceAddress}` }),
    };
  },
  create: async ({ sandboxes, dataDir, instanceId, defaults }) => {
    const { DockerSandboxBackend } = await import('@slipway/sandboxes/docker/docker.backend.js');
    return new DockerSandboxBackend({
      dockerHost: sandboxes.dockerHost,
      instanceId,
      listenAddress: sandboxes.address,
      defaultImage: sandboxes.image,
      network: sandboxes.dockerNetwork,
      subnets: sandboxes.dockerSubnets,
      socketFolder: await socketFolder(dataDir),
      pidsLimit: sandboxes.processes,
      ...defaults,
      minFreeBytes: sandboxes.diskReserveMb * MEBIBYTE,
      sandboxBytes: sandboxes.diskMb * MEBIBYTE,
      environment: sandboxes.environment,
      graceSeconds: GRACE_SECONDS,
    });
  },
} as const satisfies SandboxBackendDescriptor;
