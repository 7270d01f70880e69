import type { Dirent } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { ProcessBackendOptions } from './process.options.js';

const SYSTEM = /^(usr|bin|sbin|lib|lib32|lib64|libx32)$/;
/** Excludes what operators keep credentials in (`npmrc`, `pip.conf`, `gitconfig`, `profile.d`). */
const CONFIGURATION = [
  /^(passwd|group|nsswitch\.conf|hosts|host\.conf|gai\.conf|protocols|services)$/,
  /^(ld\.so\.cache|ld\.so\.conf|ld\.so\.conf\.d|ld-musl-\w+\.path)$/,
  /^(localtime|timezone|locale\.conf|[a-z]+-release)$/,
  /^(shells|profile|bash\.bashrc|bashrc)$/,
  /^(ca-certificates|crypto-policies)$/,
  /^(alternatives|fonts|mime\.types|ImageMagick-\d+|texmf|java(-.*)?|perl|python[\d.]*|R)$/,
];
const PARTS_OF_CONFIGURATION = [
  '/etc/ssl/certs',
  '/etc/ssl/cert.pem',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/openssl.cnf',
  '/etc/ssl1.1/openssl.cnf',
  '/etc/pki/tls/certs',
  '/etc/pki/tls/cert.pem',
  '/etc/pki/tls/openssl.cnf',
  '/etc/pki/ca-trust/extracted',
  '/etc/pki/java',
  '/etc/maven/m2.conf',
  '/etc/maven/logging',
];
const RESOLVER_CONFIGURATION = '/etc/resolv.conf';
/** The whole folder, so that changes are seen. */
const RESOLVER_FOLDER = '/run/systemd/resolve';
const CERTIFICATE_VARIABLES = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE'];
const TEMPORARY_FOLDERS = ['/tmp', '/var/tmp'];

export type Mount = { path: string } & (
  | { kind: 'shown' }
  | { kind: 'hidden'; isFolder: boolean }
  | { kind: 'link'; target: string }
  | { kind: 'empty' }
  | { kind: 'anchor' }
  | { kind: 'own'; source: string; isWritable: boolean }
);

export async function neededFiles(options: ProcessBackendOptions): Promise<string[]> {
  const { agentServer, environment, readPaths } = options;
  const certificates = CERTIFICATE_VARIABLES.flatMap((name) => environment[name] ?? []);
  return [
    ...(await nodeFiles(agentServer.node)),
    bundleOf(agentServer.entry),
    ...certificates.filter((name) => path.isAbsolute(name)),
    ...readPaths,
  ];
}

/** A node with headers is an installation, whose tools (npm) are shown too; its prefix is not, as it may be a home. */
async function nodeFiles(node: string): Promise<string[]> {
  const prefix = path.dirname(path.dirname(node));
  const headers = path.join(prefix, 'include/node');
  const isInstallation = (await realpath(headers).catch(() => null)) !== null;
  return [node, ...(isInstallation ? [path.join(prefix, 'bin'), path.join(prefix, 'lib'), headers] : [])];
}

function bundleOf(entry: string): string {
  return path.resolve(path.dirname(entry), '..');
}

/** What a sandbox sees of the machine; `resolver` replaces the machine's list of DNS servers. */
export async function machineView(options: ProcessBackendOptions, resolver: string | null): Promise<Mount[]> {
  const { folder, hiddenPaths, agentServer } = options;
  const product = path.resolve(bundleOf(agentServer.entry), '../..');
  const names = [
    ...PARTS_OF_CONFIGURATION,
    ...(await neededFiles(options)),
    RESOLVER_CONFIGURATION,
    ...(resolver === null ? [RESOLVER_FOLDER] : []),
  ];
  const [machineResolver, ...found] = await Promise.all([
    realpath(RESOLVER_CONFIGURATION).catch(() => RESOLVER_CONFIGURATION),
    entriesOf('/', [SYSTEM]),
    entriesOf('/etc', CONFIGURATION),
    ...names.map(async (name) => await shownAs(name)),
    ...[folder, product, ...hiddenPaths].map(async (name) => await hiddenAs(name)),
  ]);
  const own: Mount[] =
    resolver === null ? [] : [{ path: machineResolver, kind: 'own', source: resolver, isWritable: false }];
  return [...found.flat(), ...own];
}

/** Arguments of bubblewrap for these mounts. At one path a sandbox's own mount precedes a hiding one. */
export function rootArguments(mounts: readonly Mount[]): string[] {
  const needed = neededMounts(mounts);
  const closed = needed.filter(
    (mount) => mount.kind === 'anchor' || (mount.kind === 'hidden' && mount.isFolder),
  );
  const created = new Set<string>();
  return [
    ['--tmpfs', '/'],
    needed.flatMap((mount) => [
      ...parentFolders(mount, needed).flatMap((folder) => createOnce(folder, created)),
      ...mountArguments(mount),
    ]),
    // Last, once the mount points have been created in them.
    [...closed.map((mount) => mount.path), '/'].flatMap((folder) => ['--remount-ro', folder]),
  ].flat();
}

/** Whether the sandbox sees a file of the machine, given by its real path. */
export function isShown(mounts: readonly Mount[], file: string): boolean {
  return lastAbove(neededMounts(mounts), file)?.kind === 'shown';
}

/** Leaves out mounts that change nothing; parents come first. */
export function neededMounts(mounts: readonly Mount[]): Mount[] {
  const anchors = mounts.flatMap(anchorOf);
  const kept: Mount[] = [];
  for (const mount of [...mounts, ...anchors].toSorted(byPath)) {
    const above = lastAbove(kept, mount.path);
    if (above?.path !== mount.path && makesDifference(mount, above)) {
      kept.push(mount);
    }
  }
  return kept;
}

const PRECEDENCE: Mount['kind'][] = ['own', 'hidden', 'shown', 'link', 'anchor', 'empty'];

function byPath(one: Mount, other: Mount): number {
  if (one.path === other.path) {
    return PRECEDENCE.indexOf(one.kind) - PRECEDENCE.indexOf(other.kind);
  }
  return one.path < other.path ? -1 : 1;
}

function makesDifference(mount: Mount, above: Mount | undefined): boolean {
  switch (mount.kind) {
    case 'shown':
    case 'link':
    case 'empty':
      return above?.kind !== 'shown' && above?.kind !== 'link' && !isLinkOfTools(mount);
    case 'hidden':
      return above?.kind === 'shown';
    case 'own':
    case 'anchor':
      return true;
  }
}

/** Tools could replace a link in their own folder. */
function isLinkOfTools({ kind, path: name }: Mount): boolean {
  return kind === 'link' && TEMPORARY_FOLDERS.includes(path.dirname(name));
}

function lastAbove(mounts: readonly Mount[], name: string): Mount | undefined {
  return mounts.findLast((mount) => isInside(name, mount.path));
}

/** Mounted itself, since a tool, which owns all of `/tmp`, could rename an ordinary folder with the mounts in it. */
function anchorOf({ path: name, kind }: Mount): Mount[] {
  const temporary = TEMPORARY_FOLDERS.find((folder) => name.startsWith(`${folder}/`));
  if (temporary === undefined || kind === 'hidden') {
    return [];
  }
  const [first = '', ...deeper] = path.relative(temporary, name).split(path.sep);
  return deeper.length === 0 ? [] : [{ path: path.join(temporary, first), kind: 'anchor' }];
}

function parentFolders({ path: name }: Mount, mounts: readonly Mount[]): string[] {
  const above = lastAbove(mounts, path.dirname(name));
  if (above?.kind === 'shown' || above?.kind === 'link') {
    return [];
  }
  const folder = above?.path ?? '/';
  const between = path.relative(folder, path.dirname(name)).split(path.sep).filter(Boolean);
  return between.map((_, index) => path.join(folder, ...between.slice(0, index + 1)));
}

/** Folders that bubblewrap creates by itself can be traversed by their owner only. */
function createOnce(folder: string, created: Set<string>): string[] {
  if (created.has(folder)) {
    return [];
  }
  created.add(folder);
  return ['--perms', '0755', '--dir', folder];
}

function mountArguments(mount: Mount): string[] {
  const { path: at } = mount;
  switch (mount.kind) {
    case 'shown':
      // It may vanish at any moment, and the sandbox then starts without it.
      return ['--ro-bind-try', at, at];
    case 'hidden':
      return mount.isFolder ? ['--perms', '0755', '--tmpfs', at] : ['--ro-bind', '/dev/null', at];
    case 'link':
      return ['--symlink', mount.target, at];
    case 'empty':
      return ['--perms', '0755', '--dir', at];
    case 'anchor':
      return ['--perms', '0755', '--tmpfs', at];
    case 'own':
      return [mount.isWritable ? '--bind' : '--ro-bind', mount.source, at];
  }
}

async function entriesOf(folder: string, names: readonly RegExp[]): Promise<Mount[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const wanted = entries.filter(({ name }) => names.some((form) => form.test(name)));
  const mounts = wanted.map(async (entry: Dirent): Promise<Mount[]> => {
    const name = path.join(folder, entry.name);
    return entry.isSymbolicLink() ? await shownAs(name) : [{ path: name, kind: 'shown' }];
  });
  return (await Promise.all(mounts)).flat();
}

async function shownAs(name: string): Promise<Mount[]> {
  const real = await realpath(name).catch(() => null);
  if (real === null || real === '/') {
    return [];
  }
  const shown: Mount = { path: real, kind: 'shown' };
  return real === name ? [shown] : [shown, { path: name, kind: 'link', target: real }];
}

async function hiddenAs(name: string): Promise<Mount[]> {
  const real = await realpath(name).catch(() => null);
  return real === null || real === '/'
    ? []
    : [{ path: real, kind: 'hidden', isFolder: (await lstat(real)).isDirectory() }];
}

function isInside(name: string, folder: string): boolean {
  return name === folder || name.startsWith(`${folder}/`);
}
