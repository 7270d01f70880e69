import { lstat, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { SandboxPaths } from './sandbox-files.js';

/** What a sandbox sees of the machine's files beside its own: all but what is hidden, read-only. */
export interface VisibleFiles {
  /** Folders that look empty; none lies in another one. */
  hiddenFolders: string[];
  hiddenFiles: string[];
  /** Read-only exceptions inside of what is hidden. */
  exposed: string[];
}

/** Replaced by the sandbox's own folder, so what lies there is hidden as well. */
const TEMPORARY_FOLDERS = ['/tmp', '/var/tmp'] as const;

interface VisibilityInput {
  /** Files and folders that are there, by their real paths. */
  hidden: readonly { path: string; folder: boolean }[];
  /** Files and folders that programs need, wherever they lie. */
  needed: readonly string[];
}

/** Decides what to mount; `/` itself is never hidden. */
export function visibleFiles({ hidden, needed }: VisibilityInput): VisibleFiles {
  const wanted = hidden.filter(
    ({ path: name }) => name !== '/' && !TEMPORARY_FOLDERS.some((folder) => isIn(name, folder)),
  );
  const folders = [...new Set(wanted.flatMap((entry) => (entry.folder ? [entry.path] : [])))];
  const hiddenFolders = folders.filter((one) => !folders.some((other) => other !== one && isIn(one, other)));
  const hiddenFiles = wanted.flatMap((entry) =>
    entry.folder || hiddenFolders.some((folder) => isIn(entry.path, folder)) ? [] : [entry.path],
  );
  const covered = [...hiddenFolders, ...TEMPORARY_FOLDERS];
  const exposed = [...new Set(needed)].filter((name) => covered.some((folder) => isIn(name, folder)));
  return { hiddenFolders, hiddenFiles, exposed };
}

/** Those paths that exist, links followed. */
export async function existingPaths(paths: readonly string[]): Promise<{ path: string; folder: boolean }[]> {
  const found = await Promise.all(
    paths.map(async (name) => {
      const real = await realpath(name).catch(() => null);
      return real === null ? [] : [{ path: real, folder: (await lstat(real)).isDirectory() }];
    }),
  );
  return found.flat();
}

/**
 * What our agent server is made of: the node that runs it, the built code, its libraries. Where node lies in a folder
 * of its own (`…/v24/bin/node`), what comes with it (npm) is part of it.
 */
export function programFiles(node: string, entry: string): { product: string; files: string[] } {
  const product = path.resolve(path.dirname(entry), '../..');
  const files = ['dist', 'node_modules', 'package.json'].map((name) => path.join(product, name));
  const bin = path.dirname(node);
  const prefix = path.dirname(bin);
  const isOwnFolder = path.basename(bin) === 'bin' && !isIn(product, prefix) && prefix !== '/';
  return { product, files: [isOwnFolder ? prefix : node, ...files] };
}

function isIn(name: string, folder: string): boolean {
  return name === folder || name.startsWith(`${folder}/`);
}

/** Programs by absolute path: what a sandbox has in its PATH does not count. */
export interface BubblewrapPrograms {
  bwrap: string;
  /** util-linux's; needed by root only. */
  setpriv: string | null;
}

interface BubblewrapInput {
  programs: BubblewrapPrograms;
  visible: VisibleFiles;
  paths: SandboxPaths;
  /** Whether there is a `/var/tmp` to replace. */
  hasVarTmp: boolean;
  /** As whom it runs; null: as ourselves. */
  user: number | null;
  /** Descriptor that takes bubblewrap's reports, the exit code among them. */
  statusFd: number;
}

/**
 * What comes before a sandbox's program: namespaces of its own for processes, mounts and names, everything read-only
 * but its box. It does not end with us; killing the namespace's first process ends everything in it.
 *
 * Root mounts first, since only root passes through every folder, then becomes the sandbox's user, and that user makes
 * the namespaces: in a user namespace of its own it may do so again for each tool. `/proc` and `/dev` pass through the
 * first stage whole, because the kernel mounts a new `/proc` only where an unobscured one can be seen.
 */
export function sandboxWrapper(input: BubblewrapInput): string[] {
  const { programs, user, statusFd, paths } = input;
  const mounts = mountArguments(input);
  const status = ['--json-status-fd', String(statusFd)];
  const start = ['--chdir', paths.box];
  if (user === null || programs.setpriv === null) {
    return [programs.bwrap, ...status, ...mounts, ...NAMESPACES, ...start, '--'];
  }
  return [
    [programs.bwrap, ...mounts],
    ['--dev-bind', '/dev', '/dev', '--dev-bind', '/proc', '/proc'],
    ['--cap-drop', 'ALL', '--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID', '--'],
    [programs.setpriv, ...asUser(user), '--inh-caps=-all', '--'],
    [programs.bwrap, ...status, '--dev-bind', '/', '/', ...NAMESPACES, ...start, '--'],
  ].flat();
}

/**
 * What comes before each tool inside of a sandbox: it sees no other process, thus neither memory nor environment of
 * the agent server, and of the box only where it works, its home and its temporary files.
 */
export function toolWrapper(bwrap: string, paths: SandboxPaths): string[] {
  const writable = [paths.workspace, paths.home];
  return [
    [bwrap, '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    // First, because the box may lie below.
    ['--bind', '/tmp', '/tmp', '--bind-try', '/var/tmp', '/var/tmp'],
    ['--tmpfs', paths.box, ...writable.flatMap((folder) => ['--bind', folder, folder])],
    ['--remount-ro', paths.box],
    ['--unshare-pid', '--die-with-parent', '--'],
  ].flat();
}

/** Arguments of setpriv that become a user and its group, and nobody else's. */
export function asUser(user: number): string[] {
  return ['--reuid', String(user), '--regid', String(user), '--clear-groups'];
}

const NAMESPACES = [
  ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ['--dev', '/dev', '--proc', '/proc'],
].flat();

function mountArguments({ visible, paths, hasVarTmp, user }: BubblewrapInput): string[] {
  const { hiddenFolders, hiddenFiles, exposed } = visible;
  const covered = [...hiddenFolders, ...TEMPORARY_FOLDERS];
  return [
    ['--ro-bind', '/', '/'],
    hiddenFolders.flatMap((folder) => ['--tmpfs', folder]),
    hiddenFiles.flatMap((file) => ['--ro-bind', '/dev/null', file]),
    ['--bind', paths.tmp, '/tmp', ...(hasVarTmp ? ['--bind', paths.tmp, '/var/tmp'] : [])],
    exposed.flatMap((name) => [...passable(name, covered), '--ro-bind', name, name]),
    [...passable(paths.box, covered), '--bind', paths.box, paths.box],
    user === null ? [] : ['--ro-bind', paths.users, '/etc/passwd'],
    // After the mount points were made in them.
    hiddenFolders.flatMap((folder) => ['--remount-ro', folder]),
  ].flat();
}

/** Makes the way to a mount point in a covered folder; what bubblewrap makes by itself only its owner passes. */
function passable(name: string, covered: readonly string[]): string[] {
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
