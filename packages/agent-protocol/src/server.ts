/** Our agent server reports its spans here, so sandboxes need no access to the collector. */
export const SPANS_HEADER = 'x-slipway-spans';

/** The service accepts no other name. */
export const AGENT_SPAN_NAMES = [
  'request',
  'agent server start',
  'load routes',
  'create conversation',
  'read skills',
  'prepare repository',
  'clone repository',
  'check out files',
] as const;
export type AgentSpanName = (typeof AGENT_SPAN_NAMES)[number];

/** Times are microseconds from the request's arrival, as clocks of sandboxes may differ. Parent -1: none. */
export type AgentSpanEntry = [
  name: AgentSpanName,
  parent: number,
  startUs: number,
  durationUs: number,
  failed: 0 | 1,
];

export const MAX_AGENT_SPANS = 32;

export interface ExecuteBashRequest {
  command: string;
  cwd?: string | null;
  timeout?: number;
  /** Secret variables of this command alone. Not in the published API. */
  env?: Record<string, string> | undefined;
}

export interface BashCommand {
  kind: 'BashCommand';
  id: string;
  timestamp: string;
  command: string;
  cwd: string | null;
  timeout: number;
}

export interface BashOutput {
  kind: 'BashOutput';
  id: string;
  timestamp: string;
  command_id: string;
  order: number;
  /** Only in the last output; -1: the agent server ended the command. */
  exit_code: number | null;
  stdout: string | null;
  stderr: string | null;
}

export type BashEvent = BashCommand | BashOutput;

export interface ServerInfo {
  /** Seconds, like `idle_time`. */
  uptime: number;
  /** Since something last ran or a user last did something; reading state does not count. */
  idle_time: number;
  title: string;
  /** Version of the published document that the server follows; clients compare it. */
  version: string;
  /** Clients ask for these before they use a feature. */
  capabilities: string[];
  usable_tools: string[];
  docs: string;
  redoc: string;
  /** UUID of this start: if it changes, everything that was only in memory is lost. */
  instance_id: string;
}

/** Answer to `GET /api/ports?names=WORKER_1,WORKER_2`. */
export interface ListeningPorts {
  /** Names of variables with the number of a port at which something listens. */
  listening: string[];
}

/** Frames `{"after": …, "event": …}` spare clients a look into the log. Old servers send no header. */
export const LINKED_FRAMES = { parameter: 'frames', header: 'x-event-frames', value: 'linked' } as const;

export const LINKED_BEGINNING = '{"after":';

export function linkedFrame(after: string | null, event: string): string {
  return `${LINKED_BEGINNING}${JSON.stringify(after)},"event":${event}}`;
}
