import type { CreateEngine, EngineServerOptions } from './engine/agent-engine.js';
import type { Relay } from './port-relay.js';

export interface ListenOptions {
  /** Listens on this Unix socket; null: on host and port. */
  socket: string | null;
  relays: readonly Relay[];
  /** Whether its network is connected beside its start, so that requests have to wait for it. */
  awaitNetwork: boolean;
  host: string;
  /** 0: any free port. */
  port: number;
}

export interface AgentServerOptions extends EngineServerOptions, ListenOptions {
  bashEventsPath: string;
  workspace: string;
  /** Further folders that clients may read and write, besides `/tmp`. */
  fileRoots: string[];
  corsOrigins: string[];
  createEngine: CreateEngine;
  maxUploadBytes: number;
  /** How many conversations run their agent at the same time; further runs are queued. */
  maxConcurrentRuns: number;
  /** How long a tool that is running may go on when its user pauses the conversation. */
  pauseGraceMs: number;
  /** How long a run may take to complete its step when the server stops. */
  stopGraceMs: number;
  sockets: SocketLimits;
}

export interface SocketLimits {
  /** How long a client may take to send its first frame. */
  authTimeoutMs: number;
  pingMs: number;
  /** A client that reads nothing for this long is dropped. */
  stallMs: number;
  /** Per conversation. */
  maxSubscribers: number;
}

export const DEFAULT_LIMITS: Pick<
  AgentServerOptions,
  'maxUploadBytes' | 'maxConcurrentRuns' | 'pauseGraceMs' | 'stopGraceMs' | 'sockets'
> = {
  maxUploadBytes: 1024 * 1024 * 1024,
  maxConcurrentRuns: 10,
  pauseGraceMs: 10_000,
  stopGraceMs: 3_000,
  sockets: { authTimeoutMs: 10_000, pingMs: 30_000, stallMs: 30_000, maxSubscribers: 100 },
};
