import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { jsonText } from '@slipway/common/json-access.js';
import { withoutInherited } from '@slipway/common/processes/inherited-descriptors.js';

export interface UnixUser {
  name: string;
  uid: number;
  gid: number;
}

/** The message is one line, safe to show, and says what would help. */
export class EmbeddedPostgresError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'EmbeddedPostgresError';
  }
}

export type SupervisionReport = (
  level: 'log' | 'warn' | 'error',
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** PostgreSQL's programs run as the database's user, with nothing of our environment. */
export function optionsFor(user: UnixUser | null): { cwd: string; env: Record<string, string> } {
  const identity = user === null ? {} : { uid: user.uid, gid: user.gid };
  return { cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' }, ...identity };
}

// The database gets its own session, as Ctrl-C in the terminal must not end it before the service has drained.
/** Starts a program that outlives this process. @throws EmbeddedPostgresError */
export async function spawnDetached(
  command: readonly [program: string, ...args: string[]],
  user: UnixUser | null,
  output: number | 'ignore',
): Promise<ChildProcess> {
  const [program, ...args] = command;
  const stdio = withoutInherited(['ignore', output, output]);
  const child = spawn(program, args, { ...optionsFor(user), detached: true, stdio });
  try {
    await once(child, 'spawn');
  } catch (error) {
    throw new EmbeddedPostgresError(`PostgreSQL could not be started: ${programFailure(error)}`, error);
  }
  child.unref();
  return child;
}

/** ENOENT for a file that exists means that its loader is missing. */
export function programFailure(error: unknown): string {
  if (errorCode(error) === 'ENOENT') {
    return 'its binaries do not run here (they need glibc, so not Alpine): set DATABASE_URL instead';
  }
  const lines = (jsonText(error, 'stderr') ?? '').split('\n');
  const line = lines.find((text) => /error|fatal/i.test(text)) ?? lines[0];
  return line?.trim() || errorCode(error) || 'unknown reason';
}
