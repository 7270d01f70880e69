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
  version: string;
  docs: string;
  redoc: string;
  /** UUID of this start of the server: if it changes, everything that was only in memory is lost. */
  instance_id: string;
}
