import { PROJECT_FOLDER, SHARED_FOLDER } from '../sandbox-backend.js';
import { machineView, type Mount, rootArguments } from './machine-view.js';
import { type NetworkRules, policyCommands } from './network-rules.js';
import type { UserRange } from './sandbox-users.js';
import type { ProcessBackendOptions } from './process-options.js';
import type { SandboxPaths } from './sandbox-files.js';

/** How sandboxes run on this machine. */
export type Platform = {
  /** util-linux's setpriv; null when it is not installed. */
  setpriv: string | null;
  /** Users that sandboxes run as; null: the service's own. */
  users: UserRange | null;
} & (
  | {
      isolation: 'bwrap';
      programs: BubblewrapPrograms;
      /** Null: sandboxes share the machine's network. */
      network: IsolatedNetwork | null;
      /** Whether each sandbox has `/workspace/project`. */
      hasProject: boolean;
    }
  | { isolation: 'none' }
);

/** What gives each sandbox a network of its own; the programs by their absolute paths. */
export interface IsolatedNetwork {
  bwrap: string;
  slirp4netns: string;
  /** iproute2's. */
  ip: string;
  /** util-linux's. */
  unshare: string;
  setpriv: string;
  /** Whether the network belongs to a user namespace, because the service is not root. */
  joinsUserNamespace: boolean;
}

/** The descriptor that bubblewrap writes to how the program ends. */
const STATUS_FD = 3;
/** Applies the rules of the network, then becomes the rest of the command. */
const APPLY_RULES = 'printf "%s" "$2" | "$1" -batch - || exit 1; shift 2; exec "$@"';
const NAMESPACES = [
  ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ['--dev', '/dev', '--proc', '/proc'],
].flat();

/** Absolute paths: a sandbox's own PATH does not count. */
export interface BubblewrapPrograms {
  bwrap: string;
  /** util-linux's; needed by root only. */
  setpriv: string | null;
}

/**
 * The command that precedes a sandbox's program on this platform.
 *
 * @param rules of its network; null: it has none of its own
 */
export async function programWrapper(
  options: ProcessBackendOptions,
  platform: Platform,
  paths: SandboxPaths,
  user: number | null,
  rules: NetworkRules | null,
): Promise<string[]> {
  if (platform.isolation === 'bwrap') {
    const network =
      platform.network === null || rules === null
        ? null
        : { programs: platform.network, commands: policyCommands(rules) };
    const view = await machineView(options, network === null ? null : paths.resolver);
    const mounts = [...view, ...ownMounts(paths, platform.hasProject, user)];
    return bubblewrapCommand({ programs: platform.programs, mounts, paths, user, network });
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

/**
 * The command that precedes each tool inside a sandbox: the tool sees no other process, thus neither memory nor
 * environment of the agent server, and of the box only where it works, its home and its temporary files.
 *
 * @param hasProject whether the workspace is at `/workspace/project` too
 */
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

/** What belongs to the sandbox itself. */
function ownMounts(paths: SandboxPaths, hasProject: boolean, user: number | null): Mount[] {
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
  const users: Mount[] =
    user === null ? [] : [{ path: '/etc/passwd', kind: 'own', source: paths.users, isWritable: false }];
  return [
    ...writable,
    ...users,
    ...['/dev', '/proc', '/run', '/sys'].map((name): Mount => ({ path: name, kind: 'empty' })),
  ];
}

interface BubblewrapInput {
  programs: BubblewrapPrograms;
  /** Of its root folder. */
  mounts: readonly Mount[];
  paths: SandboxPaths;
  /** The user that it runs as; null: our own. */
  user: number | null;
  network: {
    programs: IsolatedNetwork;
    /** What `ip` runs before the program starts. */
    commands: string;
  } | null;
}

/**
 * Namespaces of its own for processes, mounts and names, everything read-only but the box. The program does not end with
 * us; killing the namespace's first process ends everything in it.
 *
 * Root mounts first, since only root can traverse every folder, then becomes the sandbox's user, and that user creates
 * the namespaces: in a user namespace of its own it may do so again for each tool. The first stage binds `/proc` and
 * `/dev` whole, because the kernel mounts a new `/proc` only where an unobscured one is visible.
 *
 * A network namespace comes before all of them: it belongs to a user namespace above those that the program may enter, so
 * that no capability in there can change its rules.
 */
function bubblewrapCommand(input: BubblewrapInput): string[] {
  const { programs, user, paths, network } = input;
  const mounts = rootArguments(input.mounts);
  const status = ['--json-status-fd', String(STATUS_FD)];
  const start = ['--chdir', paths.box];
  const enterNetwork = network === null ? [] : networkCommand(network, user !== null);
  if (user === null || programs.setpriv === null) {
    return [...enterNetwork, programs.bwrap, ...status, ...mounts, ...NAMESPACES, ...start, '--'];
  }
  return [
    enterNetwork,
    [programs.bwrap, ...mounts],
    ['--dev-bind', '/dev', '/dev', '--dev-bind', '/proc', '/proc'],
    ['--cap-drop', 'ALL', '--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID', '--'],
    [programs.setpriv, ...asUser(user), '--inh-caps=-all', '--'],
    [programs.bwrap, ...status, '--dev-bind', '/', '/', ...NAMESPACES, ...start, '--'],
  ].flat();
}

/** Creates a network namespace with the rules of the sandbox. The process that runs it is the first one in there. */
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

/** Arguments of setpriv that switch to a user and its group, and drop all others. */
function asUser(user: number): string[] {
  return ['--reuid', String(user), '--regid', String(user), '--clear-groups'];
}
