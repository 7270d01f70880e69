import { mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { productFolder } from '../../../../common/product.js';
import { AGENT_SERVER_FLAGS } from '../launch-variables.js';
import type { SandboxBackendDescriptor } from '../sandbox-backend.descriptor.js';
import { MIN_FREE_BYTES } from '../disk-guard.js';
import type { SandboxBackendOptions } from '../sandbox-backend.js';

export type ProcessIsolation = 'bwrap' | 'none';

type ProcessNetwork = 'isolated' | 'shared';

/** Paths are absolute. Sandboxes of another `instanceId` in the same folder are not touched. */
export interface ProcessBackendOptions extends SandboxBackendOptions {
  folder: string;
  hostId: string;
  isolation: 'auto' | ProcessIsolation;
  /** What all sandboxes may read of the machine besides its system. */
  readPaths: readonly string[];
  hiddenPaths: readonly string[];
  agentServer: {
    node: string;
    entry: string;
    /** Forwards between Unix sockets and ports, for programs that speak TCP only. */
    relay: string;
    args: readonly string[];
  };
  network: {
    mode: 'auto' | ProcessNetwork;
    /** Destinations that are not public, in the form of `parseDestination`. */
    allow: readonly string[];
  };
  /** The service's variables; sandboxes get an allow-list of them. */
  environment: Readonly<Record<string, string | undefined>>;
  graceMs: number;
  limits: {
    processes: number;
    cpu: number;
    /** Mebibytes, at most what the machine has. */
    memoryMb: number;
    openFiles: number;
    /** Mebibytes; 0 means no limit. */
    fileMb: number;
  };
  fileLimits: {
    logBytes: number;
    minFreeBytes: number;
    sandboxBytes: number;
  };
}

export const PROCESS_BACKEND_DEFAULTS = {
  listenAddress: null,
  readPaths: [],
  // The agent server lets a step end (3 s) and then delivers its webhooks (2 s).
  graceMs: 10_000,
  limits: { processes: 512, cpu: 2, memoryMb: 4096, openFiles: 16_384, fileMb: 10_240 },
  fileLimits: { logBytes: 10 * 1024 * 1024, minFreeBytes: MIN_FREE_BYTES, sandboxBytes: 0 },
} satisfies Partial<ProcessBackendOptions>;

const AGENT_SERVER = path.join(productFolder(), 'dist', 'bundle', 'agent-server');
const MEBIBYTE = 1024 * 1024;

export const processBackend = {
  kind: 'process',
  hostBound: true,
  runsContainers: false,
  serviceHost: ({ host }) => host ?? '127.0.0.1',
  cutOffFromLoopback: ({ host }) => (host === '::1' ? 'process sandboxes, which have no IPv6,' : null),
  create: async ({ sandboxes, dataDir, instanceId, hostId, defaults, allow, hiddenPaths }) => {
    const { ProcessSandboxBackend } = await import('./process.backend.js');
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
      environment: sandboxes.environment,
    });
  },
} as const satisfies SandboxBackendDescriptor;

/** The real path: a socket is only reached by a path without links. */
async function realFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o711 });
  return await realpath(folder);
}
