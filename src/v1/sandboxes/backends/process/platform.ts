import { createHash } from 'node:crypto';
import { access, chmod, constants, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { SandboxBackendError } from '../sandbox-backend.js';
import { probeBubblewrap, probePlain } from './isolation-probe.js';
import type { BubblewrapPrograms } from './isolation.js';
import type { ProcessBackendOptions } from './process-options.js';

/** Where programs of the system lie, beside what PATH says. */
const USUAL = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'];

/** The absolute path of a program; null when it is not installed. */
async function findProgram(name: string, searchPath: string | undefined): Promise<string | null> {
  const folders = [
    ...(searchPath ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder)),
    ...USUAL,
  ];
  for (const folder of folders) {
    const file = path.join(folder, name);
    const runs = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) {
      return file;
    }
  }
  return null;
}

/** Numbers of users (and of groups alike) that sandboxes run as when the service is root. */
interface UserRange {
  first: number;
  count: number;
}

/**
 * Beyond what distributions, systemd and container engines give away; where a container maps only the usual 65536
 * numbers, below systemd's dynamic ones.
 */
const RANGES: readonly UserRange[] = [
  { first: 0x7000_0000, count: 0x0800_0000 },
  { first: 30_000, count: 30_000 },
];

/**
 * The first range of which this user namespace knows every number.
 *
 * @param maps texts of `/proc/self/uid_map` and `/proc/self/gid_map`
 * @returns null when there is none
 */
export function usableUserRange(...maps: string[]): UserRange | null {
  return RANGES.find((range) => maps.every((map) => parseMap(map).some(contains(range)))) ?? null;
}

/** A user for a sandbox, the same for the same id as long as no other sandbox has it. */
export function chooseUser(id: string, { first, count }: UserRange, taken: ReadonlySet<number>): number {
  const start = createHash('sha256').update(id).digest().readUInt32BE() % count;
  for (let step = 0; step < count; step += 1) {
    const user = first + ((start + step) % count);
    if (!taken.has(user)) {
      return user;
    }
  }
  throw new RangeError('every user of the range is taken');
}

export function isInRange(user: number, { first, count }: UserRange): boolean {
  return user >= first && user < first + count;
}

/** user_namespaces(7): first number inside, first number outside, count. */
function parseMap(map: string): UserRange[] {
  return map
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([first, , count]) => (first === undefined || count === undefined ? [] : [{ first, count }]));
}

function contains(inner: UserRange): (outer: UserRange) => boolean {
  return (outer) => outer.first <= inner.first && outer.first + outer.count >= inner.first + inner.count;
}

/** How sandboxes run on this machine. */
export type Platform = {
  /** util-linux's setpriv; null when it is not installed. */
  setpriv: string | null;
  /** Users that sandboxes run as; null: as we do. */
  users: UserRange | null;
} & ({ isolation: 'bwrap'; programs: BubblewrapPrograms } | { isolation: 'none' });

/**
 * Tries what the options ask for.
 *
 * @returns how sandboxes run, and lines for the log
 * @throws SandboxBackendError when they cannot run in that way
 */
export async function detectPlatform(
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
  const users = usableUserRange(...(await Promise.all(maps)));
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
