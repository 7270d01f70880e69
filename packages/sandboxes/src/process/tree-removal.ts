import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, type FileHandle, open, opendir, rename, rmdir, unlink, readdir } from 'node:fs/promises';
import { types } from 'node:util';
import path from 'node:path';
import { errorCode, errorMessage, unlessCode } from '@slipway/common/errors/error-message.js';
import { type SandboxNotice, SandboxFilesLeftError } from '../sandbox-backend.js';
import { REMOVED_PREFIX } from './sandbox-files.js';

const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 60 * 60_000;

interface Attempts {
  failed: number;
  dueAt: number;
}

/** Removes folders of removed sandboxes (`.removed-ID-TIME`), with pauses of ten seconds to an hour after failures. */
export class Leftovers {
  private readonly running = new Map<string, Promise<void>>();
  private readonly attempts = new Map<string, Attempts>();
  private notices: SandboxNotice[] = [];

  constructor(private readonly folder: string) {}

  /** @throws SandboxFilesLeftError when some of it cannot be removed now */
  async remove(id: string): Promise<void> {
    const names = (await this.names()).filter((name) => sandboxIdOf(name) === id);
    try {
      await Promise.all(names.map(async (name) => await this.attempt(name)));
    } catch (error) {
      throw new SandboxFilesLeftError(
        `The files of the sandbox cannot be removed: ${reasonOf(error)}. It is tried again in the background.`,
        { cause: error },
      );
    }
  }

  /** Begins to remove what is due without waiting: a user may have made millions of files. */
  async retry(): Promise<void> {
    const names = await this.names();
    const now = performance.now();
    for (const name of names) {
      if (!this.running.has(name) && (this.attempts.get(name)?.dueAt ?? 0) <= now) {
        this.attempt(name).catch(() => undefined);
      }
    }
  }

  /** Does not count folders whose first removal is under way. */
  async count(): Promise<number> {
    const names = await this.names();
    return names.filter((name) => this.attempts.has(name) || !this.running.has(name)).length;
  }

  takeNotices(): SandboxNotice[] {
    const notices = this.notices;
    this.notices = [];
    return notices;
  }

  private async names(): Promise<string[]> {
    const names = await unlessCode('ENOENT', readdir(this.folder));
    return (names ?? []).filter((name) => name.startsWith(REMOVED_PREFIX));
  }

  private async attempt(name: string): Promise<void> {
    const running = this.running.get(name) ?? this.removeOnce(name);
    this.running.set(name, running);
    try {
      await running;
    } finally {
      this.running.delete(name);
    }
  }

  private async removeOnce(name: string): Promise<void> {
    const failed = this.attempts.get(name)?.failed ?? 0;
    const sandboxId = sandboxIdOf(name);
    try {
      await removeTree(path.join(this.folder, name));
    } catch (error) {
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failed, LONGEST_PAUSE_MS);
      this.attempts.set(name, { failed: failed + 1, dueAt: performance.now() + pauseMs });
      if (failed === 0) {
        const detail = `${reasonOf(error)}; they are tried again in the background`;
        this.notices.push({ level: 'warn', message: 'failed to remove sandbox files', sandboxId, detail });
      }
      throw error;
    }
    this.attempts.delete(name);
    if (failed > 0) {
      const detail = `after ${failed} failed attempts`;
      this.notices.push({ level: 'log', message: 'sandbox files removed', sandboxId, detail });
    }
  }
}

function sandboxIdOf(name: string): string {
  return name.slice(REMOVED_PREFIX.length).split('-', 1)[0] ?? '';
}

/** Leaves out the path, which a user has chosen and which may be of any length. */
function reasonOf(error: unknown): string {
  return errorCode(error) ?? errorMessage(error);
}

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** open(2), Linux: a handle on the place alone, which needs no permission. Node.js does not name it. */
const O_PATH = 0o10_000_000;
const BATCH = 32;
/** A concurrent removal or replacement between two calls. */
const CHANGED = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'ENOTEMPTY', 'EEXIST'];
const ENDLESS = 1_000_000;

/**
 * Copes with what a user may make: deep nesting, missing permissions, links (never followed), millions of files.
 * Folders are opened by their parent's descriptor and moved up, so no path is long and only one batch is held.
 */
export async function removeTree(folder: string): Promise<void> {
  await unlessCode(CHANGED, permitAccess(Buffer.from(folder)));
  const top = await unlessCode(CHANGED, open(folder, FOLDER));
  if (top === null) {
    await unlessCode('ENOENT', unlink(folder));
    return;
  }
  try {
    await new Removal(top).run();
  } finally {
    await top.close();
  }
  await unlessCode('ENOENT', rmdir(folder));
}

class Removal {
  /** The sandbox cannot guess the names that its folders are moved to. */
  private readonly prefix = randomUUID();
  private moved = 0;
  private removed = 0;
  private failure: Error | null = null;

  constructor(private readonly top: FileHandle) {}

  async run(): Promise<void> {
    for (let pass = 0; pass < ENDLESS; pass += 1) {
      this.removed = 0;
      this.failure = null;
      const found = await forEachEntry(
        this.top,
        async (name, isFolder) => await this.removeFromTop(name, isFolder),
      );
      if (found === 0) {
        return;
      }
      if (this.removed === 0) {
        break;
      }
    }
    throw this.failure ?? new Error('the folder is filled while it is emptied');
  }

  private async removeFromTop(name: Buffer, isFolder: boolean): Promise<void> {
    const place = placeIn(this.top, name);
    await this.attempt(async () => {
      if (!isFolder) {
        await unlink(place);
        return;
      }
      await this.empty(place);
      await rmdir(place);
    });
  }

  private async empty(place: Buffer): Promise<void> {
    await permitAccess(place);
    const folder = await unlessCode(CHANGED, open(place, FOLDER));
    if (folder === null) {
      await unlink(place);
      return;
    }
    try {
      await forEachEntry(folder, async (name, isInnerFolder) => {
        await this.attempt(async () => {
          const inner = placeIn(folder, name);
          if (!isInnerFolder) {
            await unlink(inner);
            return;
          }
          // A moved folder gets another parent, which takes write permission on the folder itself.
          await permitAccess(inner);
          this.moved += 1;
          await rename(inner, placeIn(this.top, Buffer.from(`${this.prefix}-${this.moved}`)));
        });
      });
    } finally {
      await folder.close();
    }
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.removed += 1;
    } catch (error) {
      // Concurrent changes are looked at again in the next pass, as long as there is progress.
      const isOnlyChanged = CHANGED.includes(errorCode(error) ?? '');
      this.failure = isOnlyChanged && this.failure !== null ? this.failure : toError(error);
    }
  }
}

/** Returns the number of entries; names are the kernel's bytes. */
async function forEachEntry(
  folder: FileHandle,
  work: (name: Buffer, isFolder: boolean) => Promise<void>,
): Promise<number> {
  // Latin-1 maps every byte to one character and back.
  const entries = await opendir(`/proc/self/fd/${folder.fd}`, { encoding: 'latin1', bufferSize: BATCH });
  let found = 0;
  let batch: Promise<void>[] = [];
  try {
    for await (const entry of entries) {
      found += 1;
      batch.push(work(Buffer.from(entry.name, 'latin1'), entry.isDirectory()));
      if (batch.length === BATCH) {
        await Promise.all(batch);
        batch = [];
      }
    }
  } finally {
    await Promise.all(batch);
  }
  return found;
}

/** Root needs no permission. */
async function permitAccess(place: Buffer): Promise<void> {
  if (process.getuid?.() === 0) {
    return;
  }
  const handle = await open(place, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    await chmod(`/proc/self/fd/${handle.fd}`, 0o700);
  } finally {
    await handle.close();
  }
}

function placeIn(folder: FileHandle, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${folder.fd}/`), name]);
}

function toError(error: unknown): Error {
  return types.isNativeError(error) ? error : new Error(errorMessage(error), { cause: error });
}
