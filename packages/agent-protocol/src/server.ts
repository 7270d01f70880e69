/**
 * Response header in which our agent server reports what it did for a request with a `traceparent`. The service adds
 * these spans to the trace, so sandboxes need neither access to the operator's collector nor a key for it.
 */
export const SPANS_HEADER = 'x-slipway-spans';

/** Names of everything that an agent server measures. The service accepts no other name from it. */
export const AGENT_SPAN_NAMES = [
  /** From the request to its response; always the first entry. */
  'request',
  /** From the start of the process to its first response. */
  'agent server start',
  /** Routes are loaded with the first request that needs them. */
  'load routes',
  'create conversation',
  'read skills',
  'prepare repository',
  'clone repository',
  'check out files',
] as const;
export type AgentSpanName = (typeof AGENT_SPAN_NAMES)[number];

/**
 * One entry of the header's JSON list: name, index of its parent entry (-1: none), microseconds from the arrival of the
 * request to the start of the span, its duration in microseconds, and whether it failed (1) or not (0). Times are
 * relative, since the clocks of sandboxes may differ.
 */
export type AgentSpanEntry = [
  name: AgentSpanName,
  parent: number,
  startUs: number,
  durationUs: number,
  failed: 0 | 1,
];

/** Limit for one response. */
export const MAX_AGENT_SPANS = 32;

/** Body of `start_bash_command` and `execute_bash_command`. */
export interface ExecuteBashRequest {
  command: string;
  cwd?: string | null;
  /** Seconds. */
  timeout?: number;
}

export interface BashCommand {
  kind: 'BashCommand';
  id: string;
  /** ISO 8601, UTC, without a zone. */
  timestamp: string;
  command: string;
  cwd: string | null;
  timeout: number;
}

/** A piece of a command's output; only the last one has an exit code. */
export interface BashOutput {
  kind: 'BashOutput';
  id: string;
  timestamp: string;
  command_id: string;
  /** 0, 1, … within the command. */
  order: number;
  /** -1: the agent server ended the command (timeout, server stop). */
  exit_code: number | null;
  stdout: string | null;
  stderr: string | null;
}

export type BashEvent = BashCommand | BashOutput;

export interface ServerInfo {
  /** Seconds. */
  uptime: number;
  /** Seconds since something last ran or a user last did something; reading state does not count. */
  idle_time: number;
  title: string;
  /** Of the published document that the server follows; clients compare it. */
  version: string;
  /** Names of features that clients ask for before they use them. */
  capabilities: string[];
  usable_tools: string[];
  docs: string;
  redoc: string;
  /** UUID of this start of the server: if it changes, everything that was only in memory is lost. */
  instance_id: string;
}
