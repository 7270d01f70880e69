import { setTimeout as delay } from 'node:timers/promises';
import { endProcesses, sendSignal } from '@slipway/common/processes/end-processes.js';
import {
  childrenOf,
  namespacePids,
  type ProcessFacts,
  readProcess,
} from '@slipway/common/processes/process-table.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { isProgramAlive, type ProgramRecord } from './program-record.js';

const POLL_MS = 5;
/** The kernel takes at most this long to end what was killed. */
const KILL_TIMEOUT_MS = 5_000;
/** Maximum distance between the process that was started and the namespace's first process: two bubblewraps. */
const MAX_DEPTH = 4;

export interface TerminationInput {
  /** Which program runs; null when none was recorded. */
  record: ProgramRecord | null;
  /** Resolves when the program has ended, if this process started it; null: poll for it. */
  ended: Promise<unknown> | null;
  /** The variable that all processes of the sandbox were given, as `NAME=value`. */
  marker: string;
  /** The user that only this sandbox runs as. */
  user: number | null;
  /** How long the program may take to end after SIGTERM, milliseconds; 0: it is killed at once. */
  graceMs: number;
  /** Called before anything is killed. */
  beforeKill?: () => Promise<void>;
}

/**
 * Ends a sandbox's program and every process that it started.
 *
 * @throws SandboxBackendError when some of them survive
 */
export async function terminateSandbox(input: TerminationInput): Promise<void> {
  const { record, marker, user, beforeKill } = input;
  const isGone = record !== null && isProgramAlive(record) && (await terminateProgram(input, record));
  // The pid of a process that is gone may be another one's by now.
  const root = record !== null && isProgramAlive(record) ? record.pid : null;
  if (isGone) {
    return;
  }
  await beforeKill?.();
  if (!(await endProcesses({ root, marker, user }))) {
    throw new SandboxBackendError('Processes of the sandbox cannot be ended.');
  }
}

/**
 * Asks the program to end, and ends its namespace.
 *
 * @returns whether nothing can be left of it; false without a namespace, which alone can guarantee that
 */
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

/** The pid namespace that a sandbox's program runs in. */
interface ProgramNamespace {
  /** Its first process, bubblewrap: when this one ends, the kernel ends everything in the namespace (pid_namespaces(7)). */
  init: ProcessFacts;
  /** Its second process, the program. */
  program: number;
}

/** The namespace below the process that was started; null while it is still being created, and when it is gone. */
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

/** Whether a process has this number in a namespace directly below ours. */
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
