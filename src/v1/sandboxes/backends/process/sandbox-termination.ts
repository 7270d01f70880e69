import { setTimeout as wait } from 'node:timers/promises';
import { endProcesses, sendSignal } from '../../../../common/processes/end-processes.js';
import {
  childrenOf,
  namespacePids,
  type ProcessFacts,
  readProcess,
} from '../../../../common/processes/process-table.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { isProgramAlive, type ProgramRecord } from './program-record.js';

/** Most processes between the one that was started and the namespace's first: two bubblewraps. */
const MOST_STAGES = 4;

/** The pid namespace that a sandbox's program runs in. */
interface ProgramNamespace {
  /** Its first process, bubblewrap: with this one the kernel ends everything in it (pid_namespaces(7)). */
  init: ProcessFacts;
  /** Its second process, the program. */
  program: number;
}

/** The namespace below the process that was started; null while it is still being made, and when it is gone. */
function findNamespace(root: number): ProgramNamespace | null {
  const ours = namespacePids(process.pid).length;
  let stages = [root];
  for (let stage = 0; stage < MOST_STAGES; stage += 1) {
    const children = stages.flatMap((pid) => childrenOf(pid));
    const first = children.find((pid) => isNumberInside(pid, ours, 1));
    const init = first === undefined ? null : readProcess(first);
    if (init !== null) {
      const program = childrenOf(init.pid).find((pid) => isNumberInside(pid, ours, 2));
      return program === undefined ? null : { init, program };
    }
    stages = children;
  }
  return null;
}

/** Whether a process has this number in a namespace directly below ours. */
function isNumberInside(pid: number, ours: number, number: number): boolean {
  const pids = namespacePids(pid);
  return pids.length === ours + 1 && pids.at(-1) === number;
}

const POLL_MS = 5;
/** The kernel needs this long at most for what was killed. */
const KILL_MS = 5_000;

export interface TerminationInput {
  /** Which program runs; null when none was ever written down. */
  record: ProgramRecord | null;
  /** Resolves when the program has ended, where this process started it; null: it is looked for. */
  ended: Promise<unknown> | null;
  /** The variable that all processes of the sandbox were given, as `NAME=value`. */
  marker: string;
  /** The user that only this sandbox runs as. */
  user: number | null;
  /** How long the program may take to end by itself, milliseconds; 0: it is not asked. */
  graceMs: number;
}

/**
 * Ends a sandbox's program and every process that it started.
 *
 * @throws SandboxBackendError when some of them do not go
 */
export async function terminateSandbox(input: TerminationInput): Promise<void> {
  const { record, marker, user } = input;
  const isGone = record !== null && isProgramAlive(record) && (await endProgram(input, record));
  // A pid whose process is gone may be another's by now.
  const root = record !== null && isProgramAlive(record) ? record.pid : null;
  if (!isGone && !(await endProcesses({ root, marker, user }))) {
    throw new SandboxBackendError('Processes of the sandbox cannot be ended.');
  }
}

/**
 * Asks the program to end, and ends its namespace.
 *
 * @returns whether nothing can be left of it; false where there is no namespace that would say so
 */
async function endProgram({ ended, graceMs }: TerminationInput, record: ProgramRecord): Promise<boolean> {
  const namespace = record.namespaced ? findNamespace(record.pid) : null;
  // In a namespace that is still being made there is none to ask.
  const program = record.namespaced ? (namespace?.program ?? null) : record.pid;
  if (graceMs > 0 && program !== null && sendSignal(program, 'SIGTERM')) {
    await Promise.race([until(() => !isProgramAlive(record), graceMs), ...(ended === null ? [] : [ended])]);
  }
  if (namespace === null) {
    return false;
  }
  const { init } = namespace;
  if (isAlive(init)) {
    sendSignal(init.pid, 'SIGKILL');
  }
  // The processes around the namespace end when it has.
  return await until(() => !isAlive(init) && !isProgramAlive(record), KILL_MS);
}

function isAlive({ pid, startTime }: ProcessFacts): boolean {
  return readProcess(pid)?.startTime === startTime;
}

async function until(condition: () => boolean, mostMs: number): Promise<boolean> {
  const deadline = performance.now() + mostMs;
  while (!condition()) {
    if (performance.now() >= deadline) {
      return false;
    }
    await wait(POLL_MS);
  }
  return true;
}
