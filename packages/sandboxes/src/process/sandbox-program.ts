import { setTimeout as delay } from 'node:timers/promises';
import { type ChildProcess, spawn, execFile } from 'node:child_process';
import { closeSync, openSync, renameSync, writeFileSync, constants } from 'node:fs';
import {
  bootId,
  childrenOf,
  endProcesses,
  namespacePids,
  type ProcessFacts,
  readProcess,
  sendSignal,
  startTimeOf,
} from '@slipway/common/processes/end-processes.js';
import { withoutInherited } from '@slipway/common/processes/inherited-descriptors.js';
import { SandboxBackendError, type SandboxExit, parsePorts, sessionKeyLine } from '../sandbox-backend.js';
import { open, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { constants as osConstants } from 'node:os';
import { unlessCode } from '@slipway/common/errors/error-message.js';
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
  paths: Record<'program' | 'log' | 'status' | 'keyPipe', string>;
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
  // Node.js cannot have reaped the process in this tick, so its identity can be read even if it has ended.
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
  const { O_WRONLY, O_NONBLOCK, O_NOFOLLOW } = constants;
  // No pipe: it was started with its key. No reader: it has ended, which its exit shows.
  const pipe = await unlessCode(['ENOENT', 'ENXIO'], open(file, O_WRONLY | O_NONBLOCK | O_NOFOLLOW));
  if (pipe === null) {
    return;
  }
  try {
    await pipe.write(sessionKeyLine(sessionKey));
  } finally {
    await pipe.close();
  }
  await rm(file, { force: true });
}

const POLL_MS = 5;
/** The kernel ends what was killed within this time. */
const KILL_TIMEOUT_MS = 5_000;
/** Distance from the started process to the namespace's first one: at most two bubblewraps. */
const MAX_DEPTH = 4;

export interface TerminationInput {
  record: ProgramRecord | null;
  /** Resolves when the program has ended; null when another process started it, so that it is polled. */
  ended: Promise<unknown> | null;
  marker: string;
  user: number | null;
  /** Milliseconds between SIGTERM and SIGKILL; 0 kills at once. */
  graceMs: number;
  /** Throws once the sandbox was started again: asked before each signal to what only its marker or its user tells. */
  requireStart?: () => Promise<void>;
  /** Keeps what is to be killed from forking. */
  seal?: () => Promise<void>;
}

/** @throws SandboxBackendError when some processes survive */
export async function terminateSandbox(input: TerminationInput): Promise<void> {
  const { record, marker, user, requireStart, seal } = input;
  const isGone = record !== null && isProgramAlive(record) && (await terminateProgram(input, record));
  // The pid of a process that is gone may be another one's by now.
  const root = record !== null && isProgramAlive(record) ? record.pid : null;
  if (isGone) {
    return;
  }
  await requireStart?.();
  await seal?.();
  if (!(await endProcesses({ root, marker, user }, requireStart))) {
    throw new SandboxBackendError('Processes of the sandbox cannot be ended.');
  }
}

/** True when nothing can be left of the program, which only a namespace guarantees. */
async function terminateProgram(
  { ended, graceMs }: TerminationInput,
  record: ProgramRecord,
): Promise<boolean> {
  const namespace = record.namespaced ? findNamespace(record.pid) : null;
  // A namespace that is still being created has no program to ask.
  const program = record.namespaced ? (namespace?.program ?? null) : record.pid;
  if (graceMs > 0 && program !== null && sendSignal(program, 'SIGTERM')) {
    await Promise.race([
      waitUntil(() => !isProgramAlive(record), graceMs),
      ...(ended === null ? [] : [ended]),
    ]);
  }
  if (namespace === null) {
    return false;
  }
  const { init } = namespace;
  if (isAlive(init)) {
    sendSignal(init.pid, 'SIGKILL');
  }
  // The processes around the namespace end after it.
  return await waitUntil(() => !isAlive(init) && !isProgramAlive(record), KILL_TIMEOUT_MS);
}

interface ProgramNamespace {
  /** bubblewrap: when it ends, the kernel ends everything in the namespace (pid_namespaces(7)). */
  init: ProcessFacts;
  program: number;
}

function findNamespace(root: number): ProgramNamespace | null {
  const ownDepth = namespacePids(process.pid).length;
  let generation = [root];
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const children = generation.flatMap((pid) => childrenOf(pid));
    const first = children.find((pid) => hasNumberInside(pid, ownDepth, 1));
    const init = first === undefined ? null : readProcess(first);
    if (init !== null) {
      const program = childrenOf(init.pid).find((pid) => hasNumberInside(pid, ownDepth, 2));
      return program === undefined ? null : { init, program };
    }
    generation = children;
  }
  return null;
}

function hasNumberInside(pid: number, ownDepth: number, number: number): boolean {
  const pids = namespacePids(pid);
  return pids.length === ownDepth + 1 && pids.at(-1) === number;
}

function isAlive({ pid, startTime }: ProcessFacts): boolean {
  return readProcess(pid)?.startTime === startTime;
}

async function waitUntil(condition: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() >= deadline) {
      return false;
    }
    await delay(POLL_MS);
  }
  return true;
}
