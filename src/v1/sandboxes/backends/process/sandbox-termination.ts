import { setTimeout as delay } from 'node:timers/promises';
import {
  endProcesses,
  sendSignal,
  childrenOf,
  namespacePids,
  type ProcessFacts,
  readProcess,
} from '@slipway/common/processes/end-processes.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { isProgramAlive, type ProgramRecord } from './sandbox-program.js';

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
