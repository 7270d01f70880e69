import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { endProcesses } from '@slipway/common/processes/end-processes.js';

/** Marks the processes of one tree in their environment, also those that left its group and lost their parents. */
export const MARKER_VARIABLE = 'SLIPWAY_PROCESS_TREE';

export interface RunCommandOptions {
  /** Program and arguments, run without a shell. */
  command: string[];
  cwd: string;
  /** The whole environment: nothing is inherited. */
  env: Record<string, string>;
  /** Milliseconds; null: no limit. */
  timeoutMs: number | null;
  signal?: AbortSignal;
  /** Called in order per stream; no more of that stream is read until its promise settles. */
  onOutput: (stream: 'stdout' | 'stderr', text: string) => void | Promise<void>;
}

export interface CommandResult {
  /** 128 + n when signal n ended it; null when we ended it (timeout, abort). */
  exitCode: number | null;
  timedOut: boolean;
}

/**
 * Runs a program until it has ended, then kills every process that it left behind.
 * @throws Error when the program cannot be started; whatever `onOutput` throws
 */
export async function runCommand(options: RunCommandOptions): Promise<CommandResult> {
  if (options.signal?.aborted) {
    return { exitCode: null, timedOut: false };
  }
  const { child, exited, kill } = await startProcess(options, ['ignore', 'pipe', 'pipe']);
  const read = Promise.all([
    forward(child.stdout, (text) => options.onOutput('stdout', text)),
    forward(child.stderr, (text) => options.onOutput('stderr', text)),
  ]);
  const end = await firstEnd(exited, read, options);
  // Also after a normal exit: processes that still run hold the pipes open.
  await kill();
  await exited;
  if (end.failed) {
    throw end.error;
  }
  await read;
  return { exitCode: end.exitCode, timedOut: end.timedOut };
}

interface StartedProcess {
  child: ChildProcess;
  /** 128 + n when signal n ended it. */
  exited: Promise<number>;
  kill: () => Promise<void>;
}

/** @throws Error when the program cannot be started */
export async function startProcess(
  { command, cwd, env }: Pick<RunCommandOptions, 'command' | 'cwd' | 'env'>,
  stdio: StdioOptions,
): Promise<StartedProcess> {
  const [program = '', ...args] = command;
  const marker = randomUUID();
  const child = spawn(program, args, {
    cwd,
    env: { ...env, [MARKER_VARIABLE]: marker },
    stdio,
    detached: true,
  });
  const exited = new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  });
  const { pid } = child;
  if (pid === undefined) {
    await exited;
    throw new Error('the program was not started');
  }
  return { child, exited, kill: async () => await killTree(pid, marker) };
}

/** Kills a process, its group, session and descendants, and all with the marker. Resolves when none is left. */
export async function killTree(pid: number, marker: string): Promise<void> {
  await endProcesses({ root: pid, marker: `${MARKER_VARIABLE}=${marker}`, user: null });
}

type End = CommandResult & ({ failed: false } | { failed: true; error: unknown });

async function firstEnd(
  exited: Promise<number>,
  read: Promise<unknown>,
  options: RunCommandOptions,
): Promise<End> {
  return await new Promise<End>((resolve) => {
    const abort = (): void => settle(ended(null, false));
    const timer =
      options.timeoutMs === null ? undefined : setTimeout(() => settle(ended(null, true)), options.timeoutMs);
    const settle = (end: End): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', abort);
      resolve(end);
    };
    const fail = (error: unknown): void => settle({ exitCode: null, timedOut: false, failed: true, error });
    options.signal?.addEventListener('abort', abort, { once: true });
    exited.then((code) => settle(ended(code, false)), fail);
    read.catch(fail);
  });
}

function ended(exitCode: number | null, timedOut: boolean): End {
  return { exitCode, timedOut, failed: false };
}

async function forward(stream: Readable | null, take: (text: string) => void | Promise<void>): Promise<void> {
  if (stream === null) {
    return;
  }
  stream.setEncoding('utf8');
  for await (const chunk of stream) {
    await take(String(chunk));
  }
}
