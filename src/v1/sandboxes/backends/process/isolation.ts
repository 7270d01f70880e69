import { access, lstat, realpath } from 'node:fs/promises';
import path from 'node:path';
import { SHARED_FOLDER } from '../sandbox-backend.js';
import { type NetworkRules, policyCommands } from './network-rules.js';
import { isShared, projectMounts } from './project-folder.js';
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
/** Sockets that control the machine (of container engines, of the session's services), and what others take of it. */
const ALWAYS_HIDDEN = ['/run', '/sys'];
/** The parts of it that name resolution may need. */
const RESOLVER_CONFIGURATION = '/etc/resolv.conf';
const RESOLVER_FILES = [RESOLVER_CONFIGURATION, '/run/systemd/resolve'];
const CERTIFICATE_VARIABLES = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE'];
/** Replaced by the sandbox's own folder, so that their content is hidden as well. */
const TEMPORARY_FOLDERS = ['/tmp', '/var/tmp'] as const;
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

/** Which of the machine's files a sandbox sees besides its own: all but the hidden ones, read-only. */
interface VisibleFiles {
  /** Folders that look empty; none is inside another one. */
  hiddenFolders: string[];
  hiddenFiles: string[];
  /** Read-only exceptions inside what is hidden. */
  exposed: string[];
}

interface ExistingPath {
  path: string;
  folder: boolean;
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
    const { hasProject } = platform;
    const [visible, root, hasVarTmp, resolver] = await Promise.all([
      findVisibleFiles(options, hasProject),
      hasProject ? projectMounts(paths) : ['--ro-bind', '/', '/'],
      exists('/var/tmp'),
      realpath(RESOLVER_CONFIGURATION).catch(() => RESOLVER_CONFIGURATION),
    ]);
    const network =
      platform.network === null || rules === null
        ? null
        : { programs: platform.network, commands: policyCommands(rules), resolver };
    return bubblewrapCommand({
      programs: platform.programs,
      visible,
      root,
      hasOwnRoot: hasProject,
      paths,
      hasVarTmp,
      user,
      network,
    });
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

interface BubblewrapInput {
  programs: BubblewrapPrograms;
  visible: VisibleFiles;
  /** Arguments for its root folder. */
  root: string[];
  /** Whether that is not the machine's. */
  hasOwnRoot: boolean;
  paths: SandboxPaths;
  /** Whether there is a `/var/tmp` to replace. */
  hasVarTmp: boolean;
  /** The user that it runs as; null: our own. */
  user: number | null;
  network: {
    programs: IsolatedNetwork;
    /** What `ip` runs before the program starts. */
    commands: string;
    /** The file that names the machine's DNS servers. */
    resolver: string;
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
  const mounts = mountArguments(input);
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

function mountArguments(input: BubblewrapInput): string[] {
  const { visible, root, hasOwnRoot, paths, hasVarTmp, user, network } = input;
  const { hiddenFolders, hiddenFiles, exposed } = visible;
  const mountPoints = [...exposed, paths.box, ...(network === null ? [] : [network.resolver])];
  const anchors = [...new Set(mountPoints.flatMap(anchorOf))];
  const covered = [...hiddenFolders, ...anchors];
  return [
    root,
    hiddenFolders.flatMap((folder) => ['--tmpfs', folder]),
    hiddenFiles.flatMap((file) => ['--ro-bind', '/dev/null', file]),
    ['--bind', paths.tmp, '/tmp', ...(hasVarTmp ? ['--bind', paths.tmp, '/var/tmp'] : [])],
    anchors.flatMap((folder) => ['--perms', '0755', '--tmpfs', folder]),
    exposed.flatMap((name) => [...parentFolders(name, covered), '--ro-bind', name, name]),
    [...parentFolders(paths.box, covered), '--bind', paths.box, paths.box],
    user === null ? [] : ['--ro-bind', paths.users, '/etc/passwd'],
    network === null
      ? []
      : [...parentFolders(network.resolver, covered), '--ro-bind', paths.resolver, network.resolver],
    // Last, once the mount points have been created in them.
    [...hiddenFolders, ...anchors, ...(hasOwnRoot ? ['/'] : [])].flatMap((folder) => [
      '--remount-ro',
      folder,
    ]),
  ].flat();
}

/**
 * The topmost folder that leads to a mount point below a temporary one. It is mounted itself: a tool, to which everything in
 * `/tmp` belongs, could rename an ordinary folder with all that is mounted in it, and put another one there.
 */
function anchorOf(mountPoint: string): string[] {
  const temporary = TEMPORARY_FOLDERS.find((folder) => mountPoint.startsWith(`${folder}/`));
  if (temporary === undefined) {
    return [];
  }
  const [first = '', ...deeper] = path.relative(temporary, mountPoint).split(path.sep);
  return deeper.length === 0 ? [] : [path.join(temporary, first)];
}

/** Creates the parents of a mount point in a covered folder; only their owner could traverse those that bubblewrap creates by itself. */
function parentFolders(name: string, covered: readonly string[]): string[] {
  const folder = covered.find((candidate) => name.startsWith(`${candidate}/`));
  if (folder === undefined) {
    return [];
  }
  const between = path.relative(folder, path.dirname(name)).split(path.sep);
  const parents = between.map((_, index) => path.join(folder, ...between.slice(0, index + 1)));
  return parents
    .filter((parent) => parent !== folder)
    .flatMap((parent) => ['--perms', '0755', '--dir', parent]);
}

/** What programs in a sandbox need of the machine, wherever it is. */
export function neededFiles({ agentServer, environment }: ProcessBackendOptions): string[] {
  const { files } = programFiles(agentServer.node, agentServer.entry);
  const certificates = CERTIFICATE_VARIABLES.flatMap((name) => environment[name] ?? []);
  return [...files, ...RESOLVER_FILES, ...certificates.filter((name) => path.isAbsolute(name))];
}

async function findVisibleFiles(options: ProcessBackendOptions, hasProject: boolean): Promise<VisibleFiles> {
  const { folder, hiddenPaths, agentServer } = options;
  const { product } = programFiles(agentServer.node, agentServer.entry);
  const named = neededFiles(options);
  const [found, needed] = await Promise.all([
    existingPaths([...ALWAYS_HIDDEN, folder, product, ...hiddenPaths]),
    existingPaths(named),
  ]);
  // Under their own names too: a link in a hidden folder must be exposed as well as its target.
  const links = await Promise.all(named.map(async (name) => ((await exists(name)) ? [name] : [])));
  // Of the machine's folder of that name nothing is there.
  const hidden = found.filter((entry) => !hasProject || !isShared(entry.path));
  return visibleFiles(hidden, [...links.flat(), ...needed.map((entry) => entry.path)]);
}

/**
 * What our agent server consists of: the node that runs it, and its bundle (`npm run build`). Where node has a folder of
 * its own (`…/v24/bin/node`), everything installed with it (npm) belongs to it.
 */
export function programFiles(node: string, entry: string): { product: string; files: string[] } {
  const bundle = path.resolve(path.dirname(entry), '..');
  const product = path.resolve(bundle, '../..');
  const bin = path.dirname(node);
  const prefix = path.dirname(bin);
  const isOwnFolder = path.basename(bin) === 'bin' && !isInside(product, prefix) && prefix !== '/';
  return { product, files: [isOwnFolder ? prefix : node, bundle] };
}

/**
 * Decides what to hide and what to expose; `/` itself is never hidden.
 *
 * @param hidden by their real paths
 * @param needed files and folders that programs need, wherever they are
 */
export function visibleFiles(hidden: readonly ExistingPath[], needed: readonly string[]): VisibleFiles {
  const entries = hidden.filter(
    ({ path: name }) => name !== '/' && !TEMPORARY_FOLDERS.some((folder) => isInside(name, folder)),
  );
  const folders = [...new Set(entries.flatMap((entry) => (entry.folder ? [entry.path] : [])))];
  const hiddenFolders = folders.filter(
    (one) => !folders.some((other) => other !== one && isInside(one, other)),
  );
  const hiddenFiles = entries.flatMap((entry) =>
    entry.folder || hiddenFolders.some((folder) => isInside(entry.path, folder)) ? [] : [entry.path],
  );
  const covered = [...hiddenFolders, ...TEMPORARY_FOLDERS];
  const exposed = [...new Set(needed)].filter((name) => covered.some((folder) => isInside(name, folder)));
  return { hiddenFolders, hiddenFiles, exposed };
}

/** The real paths of those that exist. */
export async function existingPaths(paths: readonly string[]): Promise<ExistingPath[]> {
  const found = await Promise.all(
    paths.map(async (name) => {
      const real = await realpath(name).catch(() => null);
      return real === null ? [] : [{ path: real, folder: (await lstat(real)).isDirectory() }];
    }),
  );
  return found.flat();
}

async function exists(name: string): Promise<boolean> {
  return await access(name).then(
    () => true,
    () => false,
  );
}

function isInside(name: string, folder: string): boolean {
  return name === folder || name.startsWith(`${folder}/`);
}
