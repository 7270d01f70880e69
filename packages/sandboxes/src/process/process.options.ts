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
  /** Where egress proxies of this machine listen, at loopback. */
  egressPort: number;
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
