import {
  chmod,
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { PROJECT_FOLDER, SandboxBackendError } from '../sandbox-backend.js';
import { parseProgramRecord, type ProgramRecord } from './sandbox-program.js';

/** A link where none is allowed counts as a missing file. */
const MISSING = ['ENOENT', 'ENOTDIR', 'ELOOP'];
const LOG_TAIL_BYTES = 4096;
const CAUSE_BYTES = 1024;
export const REMOVED_PREFIX = '.removed-';
const DEFAULT_WORKING_DIR = 'workspace';

interface SandboxLabel {
  instanceId: string;
  hostId: string;
  createdAt: number;
}

/** Below the sandbox's folder, out of its reach: the service trusts `label`, `program`, `exit` and `status`. */
const FILES = {
  label: 'sandbox.json',
  program: 'program.json',
  exit: 'exit.json',
  status: 'status.json',
  cause: 'cause.json',
  log: 'output.log',
  keyPipe: 'key.pipe',
  network: 'network.json',
  networkLog: 'network.log',
  resolver: 'resolv.conf',
  authorities: 'authorities.pem',
  users: 'passwd',
  box: 'box',
  /** Holds files of clients. A later start may have to create it, so it is not in the box. */
  shared: 'shared',
} as const;

/** Below the box, which belongs to the sandbox's user. */
const IN_BOX = {
  home: 'home',
  tmp: 'tmp',
  conversations: 'conversations',
  bashEvents: 'bash_events',
  /** Unix sockets into the sandbox, hidden from its tools. */
  sockets: 'run',
} as const;
const RESERVED_NAMES = new Set<string>(Object.values(IN_BOX));

export type SandboxPaths = Record<'root' | 'workspace' | keyof typeof FILES | keyof typeof IN_BOX, string>;

export class SandboxFiles {
  readonly paths: SandboxPaths;

  constructor(folder: string, id: string, workingDir = DEFAULT_WORKING_DIR) {
    this.paths = sandboxPaths(folder, id, workingDir);
  }

  async exists(): Promise<boolean> {
    return (await unlessCode(MISSING, stat(this.paths.root))) !== null;
  }

  /** Before the first start only: later a program may have put links in the box. */
  async create(label: SandboxLabel, user: number | null): Promise<void> {
    const { root, box, home, tmp, conversations, bashEvents, sockets, workspace } = this.paths;
    await mkdir(root, { recursive: true });
    // Another user can traverse the folder to its box, but not list it.
    await chmod(root, user === null ? 0o700 : 0o711);
    await writeWhole(this.paths.label, label, true);
    const names = path.relative(box, workspace).split(path.sep);
    const workspaceFolders = names.map((_, index) => path.join(box, ...names.slice(0, index + 1)));
    for (const folder of [box, home, tmp, conversations, bashEvents, sockets, ...workspaceFolders]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if (user !== null) {
        await chown(folder, user, user);
      }
    }
    if (user !== null) {
      await writeFile(this.paths.users, await passwdWith(user, home));
    }
    await this.createShared(user);
  }

  /** Sandboxes of earlier versions lack the folder of clients. */
  async createShared(user: number | null): Promise<void> {
    const { root, shared } = this.paths;
    if ((await unlessCode(MISSING, stat(shared))) !== null) {
      return;
    }
    const folder = await mkdtemp(path.join(root, '.shared-'));
    const project = path.join(folder, path.basename(PROJECT_FOLDER));
    await mkdir(project, { mode: 0o700 });
    if (user !== null) {
      await chown(project, user, user);
      await chown(folder, user, user);
    }
    await rename(folder, shared);
  }

  async label(): Promise<SandboxLabel | null> {
    const value = parseJson(await readIfExists(this.paths.label));
    const instanceId = jsonText(value, 'instanceId');
    const hostId = jsonText(value, 'hostId');
    const createdAt = jsonNumber(value, 'createdAt');
    return instanceId === null || hostId === null || createdAt === null
      ? null
      : { instanceId, hostId, createdAt };
  }

  /** The user that owns the box; null when there is no box. */
  async owner(): Promise<number | null> {
    return (await unlessCode(MISSING, stat(this.paths.box)))?.uid ?? null;
  }

  async program(): Promise<ProgramRecord | null> {
    return parseProgramRecord(await readIfExists(this.paths.program));
  }

  /** @throws SandboxBackendError when another process has started it since the `known` start */
  async requireStart(known: ProgramRecord | null): Promise<void> {
    if ((await this.program())?.run !== known?.run) {
      throw new SandboxBackendError('The sandbox was started again by another process of this host.');
    }
  }

  async clearReports(): Promise<void> {
    const { exit, status, keyPipe, cause } = this.paths;
    await Promise.all([exit, status, keyPipe].map(async (file) => await rm(file, { force: true })));
    await writeFile(cause, ' '.repeat(CAUSE_BYTES), { mode: 0o600 });
  }

  /** Overwrites what `clearReports` reserved, because a full disk may take nothing more. */
  async writeCause(value: { run: string; cause: string }): Promise<void> {
    const handle = await open(this.paths.cause, 'r+');
    try {
      await handle.writeFile(JSON.stringify(value).padEnd(CAUSE_BYTES));
    } finally {
      await handle.close();
    }
  }

  /** Renames the folder, so that it is no longer listed and counts as one of the leftovers. */
  async discard(): Promise<void> {
    const { root } = this.paths;
    const removed = path.join(path.dirname(root), `${REMOVED_PREFIX}${path.basename(root)}-${Date.now()}`);
    await unlessCode(MISSING, rename(root, removed));
  }
}

export function sandboxPaths(folder: string, id: string, workingDir: string): SandboxPaths {
  const root = path.join(folder, id);
  const box = path.join(root, FILES.box);
  return { root, workspace: path.join(box, workingDir), ...below(root, FILES), ...below(box, IN_BOX) };
}

function below<Name extends string>(folder: string, names: Record<Name, string>): Record<Name, string> {
  const entries = Object.entries<string>(names).map(([name, file]) => [name, path.join(folder, file)]);
  return Object.fromEntries(entries) as Record<Name, string>;
}

/** Relative to the box. @throws SandboxBackendError when it is outside, or one of the box's own folders */
export function relativeWorkingDir(workingDir: string): string {
  const inside = workingDir === PROJECT_FOLDER ? DEFAULT_WORKING_DIR : path.normalize(workingDir);
  const [first = '.'] = inside.split(path.sep);
  if (path.isAbsolute(inside) || first === '.' || first === '..' || RESERVED_NAMES.has(first)) {
    throw new SandboxBackendError(
      `The process backend cannot work in ${workingDir}: working_dir of the sandbox specification must be ${PROJECT_FOLDER}, or a relative path such as code.`,
    );
  }
  return inside;
}

export function agentSocket(paths: SandboxPaths): string {
  return path.join(paths.sockets, 'agent.sock');
}

export function portSocket(paths: SandboxPaths, name: string): string {
  return path.join(paths.sockets, `${name}.sock`);
}

export async function sandboxIds(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory() && isFolderName(entry.name)).map(({ name }) => name);
}

/** Whether a text has only letters and digits, and so is safe as the name of a folder. */
export function isFolderName(text: string): boolean {
  return /^[0-9A-Za-z]{1,64}$/.test(text);
}

/** Programs such as ssh refuse to work for a user without a name. */
async function passwdWith(user: number, home: string): Promise<string> {
  const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
  return `${users.trimEnd()}\nsandbox:x:${user}:${user}::${home}:/bin/bash\n`.trimStart();
}

/** The last whole lines of a log, at most 4 KB; empty when there is no log. */
export async function readLogTail(file: string): Promise<string> {
  const size = await sizeOf(file);
  if (size === 0) {
    return '';
  }
  const handle = await open(file, 'r');
  try {
    const start = Math.max(0, size - LOG_TAIL_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(LOG_TAIL_BYTES), 0, LOG_TAIL_BYTES, start);
    const text = buffer.toString('utf8', 0, bytesRead);
    return start === 0 ? text : text.slice(text.indexOf('\n') + 1);
  } finally {
    await handle.close();
  }
}

/** The program keeps appending to the same file; what it writes between copy and truncation may be lost. */
export async function rotateLog(file: string, maxBytes: number): Promise<void> {
  if ((await sizeOf(file)) > maxBytes) {
    // On a full disk the log goes, so that there is room for what matters more.
    await unlessCode('ENOSPC', copyFile(file, `${file}.1`));
    await truncate(file);
  }
}

async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}

/** Readers see the earlier text or the whole new one. */
export async function writeWhole(file: string, value: object, flush = false): Promise<void> {
  await writeFile(`${file}.new`, `${JSON.stringify(value)}\n`, { flush, mode: 0o600 });
  await rename(`${file}.new`, file);
}

export async function readIfExists(file: string): Promise<string> {
  return (await unlessCode(MISSING, readFile(file, 'utf8'))) ?? '';
}
