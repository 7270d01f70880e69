import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { sendSignal } from '../../../../common/processes/end-processes.js';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import type { SandboxExit } from '../sandbox-backend.js';
import { identify, type ProgramRecord } from './program-record.js';
import type { SandboxPaths } from './sandbox-paths.js';

export interface SpawnInput {
  /** Program and arguments. */
  command: string[];
  cwd: string;
  /** The whole environment. */
  env: Record<string, string>;
  /** Given to the program on its standard input; null: it has none. */
  input: string | null;
  /** As whom, where the command does not see to that itself. */
  identity: { uid?: number; gid?: number };
  paths: SandboxPaths;
  /** What is written down of the process beside its identity. */
  record: Pick<ProgramRecord, 'run' | 'port' | 'ports' | 'namespaced'>;
}

export interface SpawnedProgram {
  record: ProgramRecord;
  ended: Promise<SandboxExit>;
}

/**
 * Starts a program that outlives this process, writes down which one it is and lets go of it.
 *
 * @throws SandboxBackendError when there is no such program
 */
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
    return await refusal(failed, input.command);
  }
  // In the same turn: the process is not waited for before, so that its identity is still to be had if it ended.
  const record = { ...identify(pid), ...input.record };
  try {
    writeFileSync(`${input.paths.program}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    renameSync(`${input.paths.program}.new`, input.paths.program);
  } catch (error) {
    sendSignal(-pid, 'SIGKILL');
    throw new SandboxBackendError('The sandbox cannot be started: its files cannot be written.', {
      cause: error,
    });
  }
  // A program that ended before it read its input is told by its exit.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(input.input);
  child.unref();
  return { record, ended };
}

function spawnDetached({ command, cwd, env, input, identity, paths }: SpawnInput): ChildProcess {
  const [program = '', ...args] = command;
  // To files: pipes would fill up, or break, when the service is gone.
  const files = [openSync(paths.log, 'a', 0o600), openSync(paths.status, 'w', 0o600)] as const;
  try {
    const [log, status] = files;
    return spawn(program, args, {
      ...identity,
      cwd,
      env,
      detached: true,
      stdio: [input === null ? 'ignore' : 'pipe', log, log, status],
    });
  } finally {
    files.forEach((file) => closeSync(file));
  }
}

async function refusal(failed: Promise<never>, [program = '']: string[]): Promise<never> {
  try {
    return await failed;
  } catch (error) {
    throw new SandboxBackendError(`The sandbox cannot be started: ${program} cannot be run.`, {
      cause: error,
    });
  }
}
