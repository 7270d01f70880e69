import { MIN_FREE_BYTES } from '../disk-space.js';
import type { SandboxBackendOptions } from '../sandbox-backend.js';

/** What keeps sandboxes apart from the machine: bubblewrap's namespaces, or nothing but folders. */
export type ProcessIsolation = 'bwrap' | 'none';

/** Whether each sandbox has a network of its own. */
export type ProcessNetwork = 'isolated' | 'shared';

/** Configuration of the process backend. Paths are absolute. Sandboxes of another `instanceId` in the same folder are not touched. */
export interface ProcessBackendOptions extends SandboxBackendOptions {
  /** Where each sandbox gets a folder of its own. */
  folder: string;
  hostId: string;
  /** `auto`: bubblewrap where it works. */
  isolation: 'auto' | ProcessIsolation;
  /** Files and folders of the machine that all sandboxes see besides its system, and read only. */
  readPaths: readonly string[];
  /** What no sandbox may see in those: the service's data and home, the database's socket. */
  hiddenPaths: readonly string[];
  /** Our own agent server: `node ARGS entry`, where the entry is `dist/bundle/agent-server/main.js` of the product. */
  agentServer: {
    node: string;
    entry: string;
    /** The program that forwards between Unix sockets and ports, for programs that speak TCP only. */
    relay: string;
    args: readonly string[];
  };
  network: {
    /** `auto`: a network of its own for each sandbox where that works. */
    mode: 'auto' | ProcessNetwork;
    /** Destinations that are not public and that sandboxes reach nevertheless, as `parseDestination` reads them. */
    allow: readonly string[];
  };
  /** The service's own variables; sandboxes get some of them, by an allow-list. */
  environment: Readonly<Record<string, string | undefined>>;
  /** How long a program may take to end after SIGTERM, milliseconds. */
  graceMs: number;
  /** What one sandbox may take, where its specification says nothing else. */
  limits: {
    /** Processes and threads. */
    processes: number;
    /** Processors. */
    cpu: number;
    /** Mebibytes; less on a machine that does not have as much. */
    memoryMb: number;
    /** Of one process. */
    openFiles: number;
    /** Size of one file, mebibytes; 0: no limit. */
    fileMb: number;
  };
  fileLimits: {
    /** Size above which a sandbox's log is rotated. */
    logBytes: number;
    /** With less free space no sandbox starts, and one that fills the disk is ended. */
    minFreeBytes: number;
    /** What the files of one sandbox may take; 0: any amount. */
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
