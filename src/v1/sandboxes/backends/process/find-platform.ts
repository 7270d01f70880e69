import { chmod, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import { findProgram } from './find-program.js';
import { probeBubblewrap, probePlain } from './isolation-probe.js';
import type { Platform } from './platform.js';
import type { ProcessBackendOptions } from './process-backend-options.js';
import { type UserRange, usableUsers } from './sandbox-users.js';

/**
 * Tries what the options ask for.
 *
 * @returns how sandboxes run, and lines for the log
 * @throws SandboxBackendError when they cannot run in that way
 */
export async function findPlatform(
  options: ProcessBackendOptions,
): Promise<{ platform: Platform; notices: string[] }> {
  const users = process.getuid?.() === 0 ? await sandboxUsers() : null;
  const searchPath = options.environment['PATH'];
  const setpriv = await findProgram('setpriv', searchPath);
  const reasons: string[] = [];
  if (options.isolation !== 'none') {
    const bwrap = await findProgram('bwrap', searchPath);
    const platform = {
      isolation: 'bwrap' as const,
      programs: { bwrap: bwrap ?? '', setpriv },
      setpriv,
      users,
    };
    const reason =
      missing(bwrap, users === null ? '' : setpriv) ?? (await probeBubblewrap(options, platform));
    if (reason === null) {
      return { platform, notices: [`sandboxes are isolated by bubblewrap${asWhom(users)}`] };
    }
    if (options.isolation === 'bwrap') {
      throw new SandboxBackendError(
        `SANDBOX_ISOLATION=bwrap, and bubblewrap cannot be used: ${reason}. Run sandboxes in containers (SANDBOX_BACKEND=docker), or let them go without separation (SANDBOX_ISOLATION=none)`,
      );
    }
    reasons.push(`bubblewrap cannot be used: ${reason}`);
  }
  const platform = { isolation: 'none' as const, setpriv, users };
  return {
    platform,
    notices: [...(await preparePlain(options, platform)), withoutIsolation(reasons, users)],
  };
}

function missing(bwrap: string | null, setpriv: string | null): string | null {
  if (bwrap === null) {
    return 'it is not installed (package bubblewrap)';
  }
  return setpriv === null ? 'setpriv is not installed (package util-linux), which root needs' : null;
}

async function sandboxUsers(): Promise<UserRange> {
  const maps = ['/proc/self/uid_map', '/proc/self/gid_map'].map(async (file) => await readFile(file, 'utf8'));
  const users = usableUsers(...(await Promise.all(maps)));
  if (users === null) {
    throw new SandboxBackendError(
      'The service runs as root where no other user exists that sandboxes could run as: run it as another user.',
    );
  }
  return users;
}

/** Lets the sandboxes' users pass through the service's data folder, and sees whether they reach all that they need. */
async function preparePlain(options: ProcessBackendOptions, platform: Platform): Promise<string[]> {
  const notices: string[] = [];
  if (platform.users !== null) {
    const dataFolder = path.dirname(options.folder);
    if (platform.setpriv === null) {
      notices.push('setpriv is not installed (package util-linux): setuid programs work in sandboxes');
    }
    const { mode } = await stat(dataFolder);
    // Passing through is not seeing what is in it.
    if ((mode & 0o001) === 0) {
      await chmod(dataFolder, (mode & 0o7777) | 0o001);
      notices.push('the users that sandboxes run as may now pass through the data folder');
    }
  }
  const reason = await probePlain(options, platform);
  if (reason !== null) {
    throw new SandboxBackendError(`Sandboxes cannot run${asWhom(platform.users)}: ${reason}`);
  }
  return notices;
}

function asWhom(users: UserRange | null): string {
  return users === null ? '' : ', each as an unprivileged user of its own';
}

function withoutIsolation(reasons: string[], users: UserRange | null): string {
  const reach =
    users === null ? "all that the service's user can" : 'whatever every user of this machine can';
  return [
    `SANDBOXES ARE NOT ISOLATED: what agents run can read ${reach}; for one trusted user only`,
    ...reasons,
  ].join('; ');
}
