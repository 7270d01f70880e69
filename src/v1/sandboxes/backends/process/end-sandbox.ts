import { setTimeout as wait } from 'node:timers/promises';
import { endProcesses, sendSignal } from '../../../../common/processes/end-processes.js';
import { type ProcessFacts, readProcess } from '../../../../common/processes/process-table.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { findNamespace } from './program-namespace.js';
import { lives, type ProgramRecord } from './program-record.js';

const POLL_MS = 5;
/** The kernel needs this long at most for what was killed. */
const KILL_MS = 5_000;

export interface EndInput {
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
export async function endSandbox(input: EndInput): Promise<void> {
  const { record, marker, user } = input;
  const isGone = record !== null && lives(record) && (await endProgram(input, record));
  // A pid whose process is gone may be another's by now.
  const root = record !== null && lives(record) ? record.pid : null;
  if (!isGone && !(await endProcesses({ root, marker, user }))) {
    throw new SandboxBackendError('Processes of the sandbox cannot be ended.');
  }
}

/**
 * Asks the program to end, and ends its namespace.
 *
 * @returns whether nothing can be left of it; false where there is no namespace that would say so
 */
async function endProgram({ ended, graceMs }: EndInput, record: ProgramRecord): Promise<boolean> {
  const namespace = record.namespaced ? findNamespace(record.pid) : null;
  // In a namespace that is still being made there is none to ask.
  const program = record.namespaced ? (namespace?.program ?? null) : record.pid;
  if (graceMs > 0 && program !== null && sendSignal(program, 'SIGTERM')) {
    await Promise.race([until(() => !lives(record), graceMs), ...(ended === null ? [] : [ended])]);
  }
  if (namespace === null) {
    return false;
  }
  const { init } = namespace;
  if (isAlive(init)) {
    sendSignal(init.pid, 'SIGKILL');
  }
  // The processes around the namespace end when it has.
  return await until(() => !isAlive(init) && !lives(record), KILL_MS);
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
