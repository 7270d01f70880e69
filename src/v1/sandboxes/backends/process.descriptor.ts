import { mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { productFolder } from '../../../common/product.js';
import { AGENT_SERVER_FLAGS } from '@slipway/sandboxes/launch-variables.js';
import type { SandboxBackendDescriptor } from './sandbox-backend.descriptor.js';
import { PROCESS_BACKEND_DEFAULTS } from '@slipway/sandboxes/process/process.options.js';

const AGENT_SERVER = path.join(productFolder(), 'dist', 'bundle', 'agent-server');
const MEBIBYTE = 1024 * 1024;

export const processBackend = {
  kind: 'process',
  hostBound: true,
  runsContainers: false,
  serviceHost: ({ host }) => host ?? '127.0.0.1',
  cutOffFromLoopback: ({ host }) => (host === '::1' ? 'process sandboxes, which have no IPv6,' : null),
  proxyEnvironment: async ({ port }) => ({ EGRESS_PROXY_LISTEN: `127.0.0.1:${port}` }),
  create: async ({ sandboxes, egress, dataDir, instanceId, hostId, defaults, allow, hiddenPaths }) => {
    const { ProcessSandboxBackend } = await import('@slipway/sandboxes/process/process.backend.js');
    return new ProcessSandboxBackend({
      ...PROCESS_BACKEND_DEFAULTS,
      folder: await realFolder(path.join(dataDir, 'sandboxes')),
      instanceId,
      hostId,
      listenAddress: sandboxes.address,
      isolation: sandboxes.isolation,
      limits: {
        ...PROCESS_BACKEND_DEFAULTS.limits,
        ...defaults,
        processes: sandboxes.processes,
        // One file must not take more than all files may.
        fileMb: sandboxes.diskMb,
      },
      fileLimits: {
        ...PROCESS_BACKEND_DEFAULTS.fileLimits,
        minFreeBytes: sandboxes.diskReserveMb * MEBIBYTE,
        sandboxBytes: sandboxes.diskMb * MEBIBYTE,
      },
      readPaths: sandboxes.readPaths.map((name) => path.resolve(name)),
      hiddenPaths,
      agentServer: {
        node: process.execPath,
        entry: path.join(AGENT_SERVER, 'main.js'),
        relay: path.join(AGENT_SERVER, 'relay.main.js'),
        args: AGENT_SERVER_FLAGS,
      },
      network: { mode: sandboxes.network, allow },
      egressPort: egress.port,
      environment: sandboxes.environment,
    });
  },
} as const satisfies SandboxBackendDescriptor;

/** The real path: a socket is only reached by a path without links. */
async function realFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o711 });
  return await realpath(folder);
}
