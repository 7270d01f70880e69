import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { PROJECT_FOLDER, SHARED_FOLDER, SandboxBackendError } from '../sandbox-backend.js';
import { machineView, type Mount, rootArguments } from './machine-view.js';
import { type IsolatedNetwork, type NetworkRules, policyCommands } from './sandbox-network.js';
import type { ProcessBackendOptions } from './process.options.js';
import type { SandboxPaths } from './sandbox-files.js';

/** Users, and groups of the same numbers, for sandboxes when the service is root. */
export interface UserRange {
  first: number;
  count: number;
}

/** Beyond what distributions and engines assign; the second range fits containers with 65536 numbers. */
const RANGES: readonly UserRange[] = [
  { first: 0x7000_0000, count: 0x0800_0000 },
  { first: 30_000, count: 30_000 },
];

/** Returns null when the service is not root. @throws SandboxBackendError when it is root and there are no other users */
export async function findSandboxUsers(): Promise<UserRange | null> {
  if (process.getuid?.() !== 0) {
    return null;
  }
  const maps = ['/proc/self/uid_map', '/proc/self/gid_map'].map(async (file) => await readFile(file, 'utf8'));
  const users = usableUserRange(...(await Promise.all(maps)));
  if (users === null) {
    throw new SandboxBackendError(
      'The service runs as root where no other user exists that sandboxes could run as: run it as another user.',
    );
  }
  return users;
}

/** The first range that `/proc/self/uid_map` and `gid_map` map completely; null when there is none. */
export function usableUserRange(...maps: string[]): UserRange | null {
  return RANGES.find((range) => maps.every((map) => parseMap(map).some(contains(range)))) ?? null;
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

/** A user for a sandbox, the same for the same id unless another sandbox has it. */
export function pickSandboxUser(id: string, { first, count }: UserRange, taken: ReadonlySet<number>): number {
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

export type Platform = {
  setpriv: string | null;
  users: UserRange | null;
} & (
  | {
      isolation: 'bwrap';
      /** Absolute, so that a sandbox's own PATH does not count. */
      bwrap: string;
      network: IsolatedNetwork | null;
      hasProject: boolean;
    }
  | { isolation: 'none' }
);

const STATUS_FD = 3;
const APPLY_RULES = 'printf "%s" "$2" | "$1" -batch - || exit 1; shift 2; exec "$@"';
const NAMESPACES = [
  ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ['--dev', '/dev', '--proc', '/proc'],
].flat();

/** The command that precedes a sandbox's program; `rules` is null when the network is shared. */
export async function programWrapper(
  options: ProcessBackendOptions,
  platform: Platform,
  paths: SandboxPaths,
  user: number | null,
  rules: NetworkRules | null,
  hasAuthorities = false,
): Promise<string[]> {
  if (platform.isolation === 'bwrap') {
    const network =
      platform.network === null || rules === null
        ? null
        : { programs: platform.network, commands: policyCommands(rules) };
    const view = await machineView(options, network === null ? null : paths.resolver);
    const mounts = [...view, ...ownMounts(paths, { hasProject: platform.hasProject, hasAuthorities }, user)];
    return bubblewrapCommand({ platform, mounts, paths, user, network });
  }
  if (user === null || platform.setpriv === null) {
    return [];
  }
  return [
    platform.setpriv,
    ...asUser(user),
    '--no-new-privs',
    '--inh-caps=-all',
    '--bounding-set=-all',
    '--',
  ];
}

/** The user to spawn the program as, where no wrapper changes it. */
export function spawnIdentity(platform: Platform, user: number | null): { uid?: number; gid?: number } {
  return platform.isolation === 'none' && platform.setpriv === null && user !== null
    ? { uid: user, gid: user }
    : {};
}

/** Precedes each tool: it sees no other process, and of the box only its workspace, home and temporary files. */
export function toolWrapper(bwrap: string, paths: SandboxPaths, hasProject: boolean): string[] {
  const writable = [paths.workspace, paths.home];
  return [
    [bwrap, '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    // First, because the box may be inside.
    ['--bind', '/tmp', '/tmp', '--bind-try', '/var/tmp', '/var/tmp'],
    hasProject ? ['--bind', SHARED_FOLDER, SHARED_FOLDER] : [],
    ['--tmpfs', paths.box, ...writable.flatMap((folder) => ['--bind', folder, folder])],
    ['--remount-ro', paths.box],
    ['--unshare-pid', '--die-with-parent', '--'],
  ].flat();
}

function ownMounts(
  paths: SandboxPaths,
  { hasProject, hasAuthorities }: { hasProject: boolean; hasAuthorities: boolean },
  user: number | null,
): Mount[] {
  const writable = [
    ['/tmp', paths.tmp],
    ['/var/tmp', paths.tmp],
    [paths.box, paths.box],
    ...(hasProject
      ? [
          [SHARED_FOLDER, paths.shared],
          [PROJECT_FOLDER, paths.workspace],
        ]
      : []),
  ].map(([name = '', source = '']): Mount => ({ path: name, kind: 'own', source, isWritable: true }));
  const readable = [
    ...(user === null ? [] : [['/etc/passwd', paths.users]]),
    ...(hasAuthorities ? [[paths.authorities, paths.authorities]] : []),
  ].map(([name = '', source = '']): Mount => ({ path: name, kind: 'own', source, isWritable: false }));
  return [
    ...writable,
    ...readable,
    ...['/dev', '/proc', '/run', '/sys'].map((name): Mount => ({ path: name, kind: 'empty' })),
  ];
}

interface BubblewrapInput {
  platform: Pick<Extract<Platform, { isolation: 'bwrap' }>, 'bwrap' | 'setpriv'>;
  mounts: readonly Mount[];
  paths: SandboxPaths;
  user: number | null;
  network: {
    programs: IsolatedNetwork;
    commands: string;
  } | null;
}

/**
 * Root mounts, since only root can traverse every folder; the sandbox's user can nest user namespaces for its tools.
 * `/proc` and `/dev` are bound whole: the kernel mounts a new `/proc` only where an unobscured one is visible.
 * The network namespace comes first, so that no capability inside can change its rules.
 */
function bubblewrapCommand(input: BubblewrapInput): string[] {
  const { user, paths, network } = input;
  const { bwrap, setpriv } = input.platform;
  const mounts = rootArguments(input.mounts);
  const status = ['--json-status-fd', String(STATUS_FD)];
  const start = ['--chdir', paths.box];
  const enterNetwork = network === null ? [] : networkCommand(network, user !== null);
  if (user === null || setpriv === null) {
    return [...enterNetwork, bwrap, ...status, ...mounts, ...NAMESPACES, ...start, '--'];
  }
  return [
    enterNetwork,
    [bwrap, ...mounts],
    ['--dev-bind', '/dev', '/dev', '--dev-bind', '/proc', '/proc'],
    ['--cap-drop', 'ALL', '--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID', '--'],
    [setpriv, ...asUser(user), '--inh-caps=-all', '--'],
    [bwrap, ...status, '--dev-bind', '/', '/', ...NAMESPACES, ...start, '--'],
  ].flat();
}

/** The process that runs it is the first one in the new network namespace. */
function networkCommand(
  { programs, commands }: NonNullable<BubblewrapInput['network']>,
  isRoot: boolean,
): string[] {
  const applyRules = ['--net', '--', '/bin/sh', '-c', APPLY_RULES, 'sh', programs.ip, commands];
  if (isRoot) {
    return [programs.unshare, ...applyRules];
  }
  return [
    [programs.unshare, '--user', '--map-current-user', '--keep-caps', ...applyRules],
    [programs.setpriv, '--inh-caps=-all', '--ambient-caps=-all', '--'],
  ].flat();
}

function asUser(user: number): string[] {
  return ['--reuid', String(user), '--regid', String(user), '--clear-groups'];
}
