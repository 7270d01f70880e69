import { setTimeout as wait } from 'node:timers/promises';
import { endProcesses, sendSignal } from '../../../../common/processes/end-processes.js';
import { namespacePids, readProcesses } from '../../../../common/processes/process-table.js';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import { lives, type ProgramRecord } from './program-record.js';

const POLL_MS = 10;

export interface EndInput {
  /** Which program runs; null when none was ever written down. */
  record: ProgramRecord | null;
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
export async function endSandbox({ record, marker, user, graceMs }: EndInput): Promise<void> {
  if (record !== null && graceMs > 0 && lives(record)) {
    await ask(record, graceMs);
  }
  // A pid whose process is gone may be another's by now.
  const root = record !== null && lives(record) ? record.pid : null;
  if (!(await endProcesses({ root, marker, user }))) {
    throw new SandboxBackendError('Processes of the sandbox cannot be ended.');
  }
}

async function ask(record: ProgramRecord, graceMs: number): Promise<void> {
  const program = record.namespaced ? programInNamespace(record.pid) : record.pid;
  // In a namespace that is still being made there is none to ask.
  if (program === null || !sendSignal(program, 'SIGTERM')) {
    return;
  }
  const deadline = performance.now() + graceMs;
  while (lives(record) && performance.now() < deadline) {
    await wait(POLL_MS);
  }
}

/** In its pid namespace, bubblewrap is the first process and the program the second; both stay in its session. */
function programInNamespace(root: number): number | null {
  const ours = namespacePids(process.pid).length;
  const program = readProcesses()?.find(({ pid, session }) => {
    const pids = session === root ? namespacePids(pid) : [];
    return pids.length === ours + 1 && pids.at(-1) === 2;
  });
  return program?.pid ?? null;
}
