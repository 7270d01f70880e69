import type { CreateEngine } from './engine/agent-engine.js';
import { SOCKET_LIMITS, type SocketLimits } from './sockets/socket-request.js';
import type { WebhookOptions } from './webhooks/webhook-sender.js';

/** Everything that an agent server is told when it starts. */
export interface AgentServerOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  /** The port is written there once the server listens. */
  portFile: string | null;
  /** Folder of the conversations' records and logs. */
  conversationsPath: string;
  bashEventsPath: string;
  /** Where the agent works. */
  workspace: string;
  /** Folders that clients may read from and write to, beside the workspace. */
  fileRoots: string[];
  /** With none the server is open. */
  sessionKeys: string[];
  webhook: Omit<WebhookOptions, 'sessionKey'> | null;
  corsOrigins: string[];
  /** Variables of every child process. */
  environment: Record<string, string>;
  createEngine: CreateEngine;
  /** Program and arguments put before every shell, tool server and git command, for example a sandbox's. */
  toolWrapper: string[];
  maxUploadBytes: number;
  /** How many conversations' agents work at the same time; further ones wait. */
  maxConcurrentRuns: number;
  /** How long a run may go on with its step when the server stops. */
  stopGraceMs: number;
  sockets: SocketLimits;
}

/** What is the same everywhere but in tests, and the stock server's limit of runs. */
export const DEFAULT_LIMITS: Pick<
  AgentServerOptions,
  'maxUploadBytes' | 'maxConcurrentRuns' | 'stopGraceMs' | 'sockets'
> = {
  maxUploadBytes: 1024 * 1024 * 1024,
  maxConcurrentRuns: 10,
  stopGraceMs: 3_000,
  sockets: SOCKET_LIMITS,
};
