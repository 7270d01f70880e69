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

/** A piece of a command's output; the last one has the exit code. */
export interface BashOutput {
  kind: 'BashOutput';
  id: string;
  timestamp: string;
  command_id: string;
  /** 0, 1, … within the command. */
  order: number;
  /** -1: ended by us (time over, cleared, server ended). */
  exit_code: number | null;
  stdout: string | null;
  stderr: string | null;
}

export type BashEvent = BashCommand | BashOutput;

export interface ServerInfo {
  /** Seconds. */
  uptime: number;
  /** Seconds since something last ran or a user last did something; looking at state does not count. */
  idle_time: number;
  title: string;
  version: string;
  docs: string;
  redoc: string;
  /** UUID, another one after each start: what was only in the memory of the server before is lost. */
  instance_id: string;
}
