import { access, chmod, constants, stat } from 'node:fs/promises';
import path from 'node:path';
import { SandboxBackendError } from '../sandbox-backend.js';
import { probeBubblewrap, probeWithoutIsolation } from './isolation-probe.js';
import type { Platform } from './isolation.js';
import type { ProcessBackendOptions } from './process-options.js';
import { findSandboxUsers, type UserRange } from './sandbox-users.js';

/** Where system programs are, besides PATH. */
const SYSTEM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'];

/**
 * Finds the isolation that the options ask for and that works here.
 *
 * @returns how sandboxes run, and lines for the log
 * @throws SandboxBackendError when they cannot run like that
 */
export async function detectPlatform(
  options: ProcessBackendOptions,
): Promise<{ platform: Platform; notices: string[] }> {
  const users = await findSandboxUsers();
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
      missingProgram(bwrap, users === null ? '' : setpriv) ?? (await probeBubblewrap(options, platform));
    if (reason === null) {
      return { platform, notices: [`sandboxes are isolated by bubblewrap${asUnprivilegedUser(users)}`] };
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
    notices: [...(await prepareWithoutIsolation(options, platform)), isolationWarning(reasons, users)],
  };
}

/** The absolute path of a program; null when it is not installed. */
async function findProgram(name: string, searchPath: string | undefined): Promise<string | null> {
  const folders = [
    ...(searchPath ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder)),
    ...SYSTEM_FOLDERS,
  ];
  for (const folder of folders) {
    const file = path.join(folder, name);
    const isExecutable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) {
      return file;
    }
  }
  return null;
}

function missingProgram(bwrap: string | null, setpriv: string | null): string | null {
  if (bwrap === null) {
    return 'it is not installed (package bubblewrap)';
  }
  return setpriv === null ? 'setpriv is not installed (package util-linux), which root needs' : null;
}

/** Lets the sandboxes' users traverse the service's data folder, and checks that they reach all that they need. */
async function prepareWithoutIsolation(
  options: ProcessBackendOptions,
  platform: Platform,
): Promise<string[]> {
  const notices: string[] = [];
  if (platform.users !== null) {
    const dataFolder = path.dirname(options.folder);
    if (platform.setpriv === null) {
      notices.push('setpriv is not installed (package util-linux): setuid programs work in sandboxes');
    }
    const { mode } = await stat(dataFolder);
    // Execute permission lets them traverse the folder, not list it.
    if ((mode & 0o001) === 0) {
      await chmod(dataFolder, (mode & 0o7777) | 0o001);
      notices.push('the users that sandboxes run as may now traverse the data folder');
    }
  }
  const reason = await probeWithoutIsolation(options, platform);
  if (reason !== null) {
    throw new SandboxBackendError(`Sandboxes cannot run${asUnprivilegedUser(platform.users)}: ${reason}`);
  }
  return notices;
}

function asUnprivilegedUser(users: UserRange | null): string {
  return users === null ? '' : ', each as an unprivileged user of its own';
}

function isolationWarning(reasons: string[], users: UserRange | null): string {
  const readable =
    users === null ? "all that the service's user can" : 'whatever every user of this machine can';
  return [
    `SANDBOXES ARE NOT ISOLATED: what agents run can read ${readable}; for one trusted user only`,
    ...reasons,
  ].join('; ');
}
