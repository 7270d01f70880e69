import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';

/** Variable by which the processes of one tree are known even when they left its group and its parents are gone. */
export const MARKER_VARIABLE = 'SLIPWAY_PROCESS_TREE';

const ROUNDS = 100;
const ROUND_PAUSE_MS = 5;

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
 * they fork meanwhile; answers when none is left. A process that dropped its environment *and* lost its parents
 * before this was called is not found: only a pid namespace holds that one. Without `/proc` only the group is killed.
 */
export async function killTree(pid: number, marker: string): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const members = treeMembers(pid, marker);
    if (members === null) {
      sendSignal(-pid, 'SIGKILL');
      return;
    }
    if (members.length === 0) {
      return;
    }
    // Stopped first: a parent that is killed before its child is seen would take the trace to it along.
    members.forEach((member) => sendSignal(member, 'SIGSTOP'));
    const all = new Set([...members, ...(treeMembers(pid, marker) ?? [])]);
    all.forEach((member) => sendSignal(member, 'SIGKILL'));
    await wait(ROUND_PAUSE_MS);
  }
}

interface ProcessFacts {
  pid: number;
  parent: number;
  group: number;
  session: number;
}

/** Living members, null where there is no `/proc`. */
function treeMembers(root: number, marker: string): number[] | null {
  const processes = readProcesses();
  if (processes === null) {
    return null;
  }
  const found = new Set(
    processes
      .filter(
        ({ pid, group, session }) =>
          pid === root || group === root || session === root || carries(pid, marker),
      )
      .map(({ pid }) => pid),
  );
  for (let grown = true; grown;) {
    const children = processes.filter(({ pid, parent }) => found.has(parent) && !found.has(pid));
    children.forEach(({ pid }) => found.add(pid));
    grown = children.length > 0;
  }
  found.delete(process.pid);
  return [...found];
}

function readProcesses(): ProcessFacts[] | null {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => readFacts(Number(name)));
  } catch {
    return null;
  }
}

/** proc(5), `/proc/[pid]/stat`: the name is in brackets and may hold anything, brackets too. */
function readFacts(pid: number): ProcessFacts[] {
  const stat = readIfThere(`/proc/${pid}/stat`);
  const [state, parent, group, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === undefined || state === '' || state === 'Z' || state === 'X') {
    return [];
  }
  return [{ pid, parent: Number(parent), group: Number(group), session: Number(session) }];
}

function carries(pid: number, marker: string): boolean {
  return readIfThere(`/proc/${pid}/environ`).split('\0').includes(`${MARKER_VARIABLE}=${marker}`);
}

/** Processes end while they are looked at, and other users' may not be read. */
function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone meanwhile, or not ours.
  }
}
