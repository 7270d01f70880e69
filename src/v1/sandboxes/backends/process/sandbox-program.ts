import { type ChildProcess, spawn, execFile } from 'node:child_process';
import { closeSync, openSync, renameSync, writeFileSync, constants } from 'node:fs';
import { sendSignal, bootId, readProcess, startTimeOf } from '@slipway/common/processes/end-processes.js';
import { withoutInherited } from '../../../../common/processes/inherited-descriptors.js';
import { SandboxBackendError, type SandboxExit, parsePorts } from '../sandbox-backend.js';
import type { SandboxPaths } from './sandbox-files.js';
import { open, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { constants as osConstants } from 'node:os';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { jsonAt, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';

/** Identifies a process, so that a later one with its pid is not mistaken for it. */
export interface ProcessIdentity {
  pid: number;
  startTime: string;
  bootId: string;
}

export interface ProgramRecord extends ProcessIdentity {
  run: string;
  /** TCP port of this machine; null when it listens on the Unix socket in its box. */
  port: number | null;
  ports: Record<string, number>;
  networked: boolean;
  namespaced: boolean;
}

/** The identity of a process that we just started and have not waited for; it may have ended. */
export function identifyProcess(pid: number): ProcessIdentity {
  return { pid, startTime: startTimeOf(pid) ?? '', bootId: bootId() };
}

/** A zombie is not alive. */
export function isProgramAlive(record: ProcessIdentity): boolean {
  const found = readProcess(record.pid);
  return found !== null && found.startTime === record.startTime && bootId() === record.bootId;
}

/** A process of one start of a sandbox. */
export function parseStartedProcess(value: unknown): (ProcessIdentity & { run: string }) | null {
  const [pid, run] = [jsonNumber(value, 'pid'), jsonText(value, 'run')];
  const startTime = jsonText(value, 'startTime') ?? '';
  return pid === null || run === null
    ? null
    : { pid, startTime, bootId: jsonText(value, 'bootId') ?? '', run };
}

export function parseProgramRecord(text: string): ProgramRecord | null {
  const value = parseJson(text);
  const started = parseStartedProcess(value);
  return (
    started && {
      ...started,
      port: jsonNumber(value, 'port'),
      ports: parsePorts(jsonAt(value, 'ports')),
      networked: jsonAt(value, 'networked') === true,
      namespaced: jsonAt(value, 'namespaced') === true,
    }
  );
}

/** Parses bubblewrap's report: one JSON document per line, the exit code last. */
export function parseBubblewrapStatus(text: string): SandboxExit | null {
  for (const line of text.split('\n').toReversed()) {
    const code = jsonNumber(parseJson(line), 'exit-code');
    if (code !== null) {
      const signal = Object.entries(osConstants.signals).find(([, number]) => number === code - 128);
      return signal === undefined
        ? { code, signal: null, outOfMemory: false }
        : { code: null, signal: signal[0], outOfMemory: false };
    }
  }
  return null;
}

/** Parses the exit that we wrote down; null when the text is about another start. */
export function parseExit(text: string, { run }: ProgramRecord): SandboxExit | null {
  const value = parseJson(text);
  return jsonText(value, 'run') === run
    ? { code: jsonNumber(value, 'code'), signal: jsonText(value, 'signal'), outOfMemory: false }
    : null;
}

export type ProgramInput =
  | { kind: 'none' }
  | { kind: 'text'; text: string }
  /** The program waits for a line in the sandbox's key pipe. */
  | { kind: 'key-pipe' };

interface SpawnInput {
  command: string[];
  cwd: string;
  env: Record<string, string>;
  input: ProgramInput;
  identity: { uid?: number; gid?: number };
  paths: SandboxPaths;
  record: Omit<ProgramRecord, keyof ProcessIdentity>;
}

export interface SpawnedProgram {
  record: ProgramRecord;
  ended: Promise<SandboxExit>;
}

/** The program outlives this process. @throws SandboxBackendError when there is no such program */
export async function spawnProgram(input: SpawnInput): Promise<SpawnedProgram> {
  const child = spawnDetached(input);
  const ended = new Promise<SandboxExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal, outOfMemory: false }));
  });
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject);
  });
  const pid = child.pid;
  if (pid === undefined) {
    return await throwSpawnFailure(failed, input.command);
  }
  // In the same tick: Node.js cannot have reaped the process yet, so its identity can be read even if it has ended.
  const record = { ...identifyProcess(pid), ...input.record };
  try {
    writeFileSync(`${input.paths.program}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    renameSync(`${input.paths.program}.new`, input.paths.program);
  } catch (error) {
    sendSignal(-pid, 'SIGKILL');
    throw new SandboxBackendError('The sandbox cannot be started: its files cannot be written.', {
      cause: error,
    });
  }
  // Fails when the program ended before it read its input, which its exit shows.
  child.stdin?.on('error', () => undefined);
  if (input.input.kind === 'text') {
    child.stdin?.end(input.input.text);
  }
  child.unref();
  return { record, ended };
}

function spawnDetached({ command, cwd, env, input, identity, paths }: SpawnInput): ChildProcess {
  const [program = '', ...args] = command;
  // Pipes would fill up or break when the service is gone, so the output goes to files.
  const opened: number[] = [];
  const openOwn = (file: string, flags: string): number => {
    const descriptor = openSync(file, flags, 0o600);
    opened.push(descriptor);
    return descriptor;
  };
  try {
    const log = openOwn(paths.log, 'a');
    const status = openOwn(paths.status, 'w');
    return spawn(program, args, {
      ...identity,
      cwd,
      env,
      detached: true,
      stdio: withoutInherited([standardInput(input, () => openOwn(paths.keyPipe, 'r+')), log, log, status]),
    });
  } finally {
    opened.forEach((descriptor) => closeSync(descriptor));
  }
}

function standardInput({ kind }: ProgramInput, openKeyPipe: () => number): 'ignore' | 'pipe' | number {
  switch (kind) {
    case 'none':
      return 'ignore';
    case 'text':
      return 'pipe';
    case 'key-pipe':
      return openKeyPipe();
  }
}

async function throwSpawnFailure(failed: Promise<never>, [program = '']: string[]): Promise<never> {
  try {
    return await failed;
  } catch (error) {
    throw new SandboxBackendError(`The sandbox cannot be started: ${program} cannot be run.`, {
      cause: error,
    });
  }
}

const run = promisify(execFile);
const MKFIFO_TIMEOUT_MS = 10_000;

export function sessionKeyLine(sessionKey: string): string {
  return `${JSON.stringify({ session_api_key: sessionKey })}\n`;
}

/** Makes the pipe for a waiting program's key. The program opens both ends, so that its input does not end. */
export async function createKeyPipe(file: string): Promise<void> {
  await rm(file, { force: true });
  try {
    await run('mkfifo', ['-m', '600', file], { timeout: MKFIFO_TIMEOUT_MS, env: { PATH: '/usr/bin:/bin' } });
  } catch (error) {
    throw new SandboxBackendError('The sandbox cannot be started: its key pipe cannot be made.', {
      cause: error,
    });
  }
}

/** Gives a waiting program its session key. After a crash it may be written twice: the program reads one line. */
export async function writeSessionKey(file: string, sessionKey: string): Promise<void> {
  let pipe;
  try {
    pipe = await open(file, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    // No pipe: it was started with its key. No reader: it has ended, which its exit shows.
    if (['ENOENT', 'ENXIO'].includes(errorCode(error) ?? '')) {
      return;
    }
    throw error;
  }
  try {
    await pipe.write(sessionKeyLine(sessionKey));
  } finally {
    await pipe.close();
  }
  await rm(file, { force: true });
}
