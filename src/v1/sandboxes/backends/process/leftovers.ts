import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { errorCode, errorMessage, unlessCode } from '@slipway/common/errors/error-message.js';
import { type SandboxNotice, SandboxFilesLeftError } from '../sandbox-backend.js';
import { REMOVED_PREFIX } from './sandbox-files.js';
import { removeTree } from './tree-removal.js';

const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 60 * 60_000;

interface Attempts {
  failed: number;
  dueAt: number;
}

/** Removes folders of removed sandboxes (`.removed-ID-TIME`), with pauses of ten seconds to an hour after failures. */
export class Leftovers {
  readonly #running = new Map<string, Promise<void>>();
  readonly #attempts = new Map<string, Attempts>();
  #notices: SandboxNotice[] = [];

  constructor(private readonly folder: string) {}

  /** @throws SandboxFilesLeftError when some of it cannot be removed now */
  async remove(id: string): Promise<void> {
    const names = (await this.#names()).filter((name) => sandboxIdOf(name) === id);
    try {
      await Promise.all(names.map(async (name) => await this.#attempt(name)));
    } catch (error) {
      throw new SandboxFilesLeftError(
        `The files of the sandbox cannot be removed: ${reasonOf(error)}. It is tried again in the background.`,
        { cause: error },
      );
    }
  }

  /** Begins to remove what is due without waiting: a user may have made millions of files. */
  async retry(): Promise<void> {
    const names = await this.#names();
    const now = performance.now();
    for (const name of names) {
      if (!this.#running.has(name) && (this.#attempts.get(name)?.dueAt ?? 0) <= now) {
        this.#attempt(name).catch(() => undefined);
      }
    }
  }

  /** Does not count folders whose first removal is under way. */
  async count(): Promise<number> {
    const names = await this.#names();
    return names.filter((name) => this.#attempts.has(name) || !this.#running.has(name)).length;
  }

  takeNotices(): SandboxNotice[] {
    const notices = this.#notices;
    this.#notices = [];
    return notices;
  }

  async #names(): Promise<string[]> {
    const names = await unlessCode('ENOENT', readdir(this.folder));
    return (names ?? []).filter((name) => name.startsWith(REMOVED_PREFIX));
  }

  async #attempt(name: string): Promise<void> {
    const running = this.#running.get(name) ?? this.#removeOnce(name);
    this.#running.set(name, running);
    try {
      await running;
    } finally {
      this.#running.delete(name);
    }
  }

  async #removeOnce(name: string): Promise<void> {
    const failed = this.#attempts.get(name)?.failed ?? 0;
    const sandboxId = sandboxIdOf(name);
    try {
      await removeTree(path.join(this.folder, name));
    } catch (error) {
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failed, LONGEST_PAUSE_MS);
      this.#attempts.set(name, { failed: failed + 1, dueAt: performance.now() + pauseMs });
      if (failed === 0) {
        const detail = `${reasonOf(error)}; they are tried again in the background`;
        this.#notices.push({ level: 'warn', message: 'failed to remove sandbox files', sandboxId, detail });
      }
      throw error;
    }
    this.#attempts.delete(name);
    if (failed > 0) {
      const detail = `after ${failed} failed attempts`;
      this.#notices.push({ level: 'log', message: 'sandbox files removed', sandboxId, detail });
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
