import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { constants } from 'node:os';
import { PassThrough, Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { endProcesses, startTimeOf } from '@slipway/common/processes/end-processes.js';

/** Marks the processes of one tree in their environment, also those that left its group and lost their parents. */
export const MARKER_VARIABLE = 'SLIPWAY_PROCESS_TREE';
const LAST_OUTPUT_MS = 500;
const MAX_LOOKS = 20;

export interface Program {
  /** Program and arguments, run without a shell. */
  command: string[];
  cwd: string;
  /** The whole environment: nothing is inherited. */
  env: Record<string, string>;
}

export interface RunCommandOptions extends Program {
  /** Milliseconds; null means no limit. */
  timeoutMs: number | null;
  signal?: AbortSignal | undefined;
  /** Standard input; empty by default. */
  input?: Readable | undefined;
  /** Called in order per stream; no more of that stream is read until its promise settles. */
  onOutput: (stream: 'stdout' | 'stderr', text: string) => void | Promise<void>;
}

export interface CommandResult {
  /** 128 + n when signal n ended it; null when we ended it (timeout, abort). */
  exitCode: number | null;
  timedOut: boolean;
}

/** Runs a program until it has ended, then kills all that it left behind. @throws Error; whatever `onOutput` throws */
export async function runCommand(options: RunCommandOptions): Promise<CommandResult> {
  const { timeoutMs, signal, input, onOutput } = options;
  if (signal?.aborted) {
    return { exitCode: null, timedOut: false };
  }
  const stdio: StdioOptions = [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'];
  const { stdin, stdout, stderr, exited, kill } = await startProcess(options, stdio);
  if (input !== undefined) {
    // A program that fails reads no further, and its exit code says so.
    pipeline(input, stdin).catch(() => undefined);
  }
  const read = Promise.all([
    forward(stdout, (text) => onOutput('stdout', text)),
    forward(stderr, (text) => onOutput('stderr', text)),
  ]);
  const stopped = Promise.withResolvers<'timeout' | 'abort'>();
  const timer = timeoutMs === null ? undefined : setTimeout(() => stopped.resolve('timeout'), timeoutMs);
  const abort = (): void => stopped.resolve('abort');
  signal?.addEventListener('abort', abort, { once: true });
  let ending: number | 'timeout' | 'abort';
  try {
    ending = await Promise.race([exited, stopped.promise, read.then(() => exited)]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    // Also after a normal exit: processes that still run hold the pipes open.
    await kill();
    await exited;
  }
  await Promise.all([read, readToEnd([stdout, stderr])]);
  return { exitCode: typeof ending === 'number' ? ending : null, timedOut: ending === 'timeout' };
}

/** Resolves once the output of a tree that has ended is read. A daemon that left it without a trace may hold the pipes. */
export async function readToEnd(outputs: readonly Readable[]): Promise<void> {
  const reads = outputs.map(async (output) => {
    for (let looks = 1; !output.closed; looks += 1) {
      const signal = AbortSignal.timeout(LAST_OUTPUT_MS);
      await once(output, 'close', { signal }).catch(() => undefined);
      // What is left is a pipe's worth, unless the daemon writes more.
      if (output.readableLength === 0 || looks === MAX_LOOKS) {
        output.destroy();
      }
    }
  });
  await Promise.all(reads);
}

/** Runs a program and returns its standard output; one that writes more than that many characters is ended. */
export async function commandOutput(
  program: Omit<RunCommandOptions, 'signal' | 'onOutput'>,
  maxCharacters: number,
): Promise<CommandResult & { output: string; isCut: boolean }> {
  const aborter = new AbortController();
  let output = '';
  const result = await runCommand({
    ...program,
    signal: aborter.signal,
    onOutput: (stream, text) => {
      output += stream === 'stdout' ? text : '';
      if (output.length > maxCharacters) {
        aborter.abort();
      }
    },
  });
  return { ...result, output, isCut: aborter.signal.aborted };
}

export interface StartedProcess {
  child: ChildProcess;
  /** A stream that is not piped is empty, or leads nowhere. */
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  /** 128 + n when signal n ended it. */
  exited: Promise<number>;
  /** Kills it, its group, session and descendants, and all with its marker. Resolves when none is left. */
  kill: () => Promise<void>;
}

/** @throws Error when the program cannot be started */
export async function startProcess(
  { command, cwd, env }: Program,
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
  const { pid: root } = child;
  if (root === undefined) {
    await exited;
    throw new Error('the program was not started');
  }
  const since = startTimeOf(root);
  return {
    child,
    stdin: child.stdin ?? new PassThrough(),
    stdout: child.stdout ?? Readable.from([]),
    stderr: child.stderr ?? Readable.from([]),
    exited,
    kill: async () => {
      await endProcesses({ root, marker: `${MARKER_VARIABLE}=${marker}`, user: null, since });
    },
  };
}

async function forward(stream: Readable, take: (text: string) => void | Promise<void>): Promise<void> {
  stream.setEncoding('utf8');
  try {
    for await (const chunk of stream) {
      await take(String(chunk));
    }
  } catch (error) {
    // `readToEnd` destroys streams that stay open.
    if (errorCode(error) !== 'ERR_STREAM_PREMATURE_CLOSE') {
      throw error;
    }
  }
}
