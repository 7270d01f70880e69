import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { endProcesses } from '../common/processes/end-processes.js';

/** Variable by which the processes of one tree are known even when they left its group and its parents are gone. */
export const MARKER_VARIABLE = 'SLIPWAY_PROCESS_TREE';

export interface RunCommandOptions {
  /** Program and arguments; no shell is put between. */
  command: string[];
  cwd: string;
  /** The whole environment: nothing of ours is inherited. */
  env: Record<string, string>;
  /** Milliseconds; null: no limit. */
  timeoutMs: number | null;
  signal?: AbortSignal;
  /** Called in order per stream; while its promise is open, no more of that stream is read. */
  onOutput: (stream: 'stdout' | 'stderr', text: string) => void | Promise<void>;
}

export interface CommandResult {
  /** 128 + n when signal n ended it; null when we did (time over, aborted). */
  exitCode: number | null;
  timedOut: boolean;
}

/**
 * Runs a program and waits until it has ended. Whatever it started and left behind ends with it.
 *
 * @throws Error when the program cannot be started, or what `onOutput` threw
 */
export async function runCommand(options: RunCommandOptions): Promise<CommandResult> {
  if (options.signal?.aborted) {
    return { exitCode: null, timedOut: false };
  }
  const [program = '', ...args] = options.command;
  const marker = randomUUID();
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: { ...options.env, [MARKER_VARIABLE]: marker },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own.
    detached: true,
  });
  const exited = new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
  });
  const pid = child.pid;
  if (pid === undefined) {
    await exited;
    throw new Error('the program has no process id');
  }
  const read = Promise.all([
    forward(child.stdout, (text) => options.onOutput('stdout', text)),
    forward(child.stderr, (text) => options.onOutput('stderr', text)),
  ]);
  const end = await firstOf(exited, read, options);
  // Also after a normal end: what still runs holds the pipes open.
  await killTree(pid, marker);
  await exited;
  if (end.failed) {
    throw end.error;
  }
  await read;
  return { exitCode: end.exitCode, timedOut: end.timedOut };
}

type End = CommandResult & ({ failed: false } | { failed: true; error: unknown });

async function firstOf(
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

async function forward(stream: Readable, take: (text: string) => void | Promise<void>): Promise<void> {
  stream.setEncoding('utf8');
  for await (const chunk of stream) {
    await take(String(chunk));
  }
}

/**
 * Kills a process, its group, its session, its descendants and every process that carries the marker, however often
 * they fork meanwhile; answers when none is left.
 */
export async function killTree(pid: number, marker: string): Promise<void> {
  await endProcesses({ root: pid, marker: `${MARKER_VARIABLE}=${marker}`, user: null });
}
