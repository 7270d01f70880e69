import { randomBytes } from 'node:crypto';
import { rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorCode, unlessCode } from '@slipway/common/errors/error-message.js';
import type { SupervisionReport } from './programs.js';

/** A reserve is made when the disk has this many times its size. */
const ROOM = 4;
const CHUNK_BYTES = 2 ** 20;
const RELEASED = 'disk of embedded database is full, its reserve is released';

const DEFAULTS = {
  /** Enough for a recovery, which begins a segment of the write-ahead log (16 MiB), and for removing files. */
  bytes: 64 * 2 ** 20,
  /** Less than a segment of the write-ahead log: the server's next write may be its last one. */
  fullBytes: 16 * 2 ** 20,
  patienceMs: 5_000,
};
export type DiskReserveOptions = Partial<typeof DEFAULTS>;

/** A file that is removed when the embedded database's disk is full, so that the server can write again. */
export class DiskReserve {
  private readonly options: typeof DEFAULTS;
  private fullSince: number | null = null;

  constructor(
    private readonly file: string,
    options: DiskReserveOptions = {},
  ) {
    this.options = { ...DEFAULTS, ...options };
  }

  /** Bytes that the server can still write, without the reserve. */
  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(path.dirname(this.file));
    return bavail * bsize;
  }

  /** Checks the disk, and releases or creates the reserve if necessary. */
  async look(report: SupervisionReport): Promise<void> {
    const free = await this.freeBytes();
    const { bytes, fullBytes, patienceMs } = this.options;
    if (free >= fullBytes) {
      this.fullSince = null;
      if (free >= bytes * ROOM && !(await this.isHeld()) && (await this.make(bytes))) {
        report('log', 'disk reserve of embedded database made', {});
      }
      return;
    }
    this.fullSince ??= performance.now();
    if (performance.now() - this.fullSince >= patienceMs && (await this.isHeld())) {
      await rm(this.file, { force: true });
      const free_bytes = await this.freeBytes();
      report('error', RELEASED, { free_bytes });
    }
  }

  /** A server that recovers needs room, and nothing looks before it runs. */
  async releaseIfFull(onNotice: (line: string) => void): Promise<void> {
    if ((await this.freeBytes()) < this.options.fullBytes && (await this.isHeld())) {
      await rm(this.file, { force: true });
      onNotice(RELEASED);
    }
  }

  private async isHeld(): Promise<boolean> {
    return ((await unlessCode('ENOENT', stat(this.file)))?.size ?? 0) > 0;
  }

  /** False without room for it. */
  private async make(bytes: number): Promise<boolean> {
    const draft = `${this.file}.new`;
    // Random, as a file system that compresses would keep nothing of zeros.
    const chunk = randomBytes(CHUNK_BYTES);
    const chunks = Array.from({ length: bytes / CHUNK_BYTES }, () => chunk);
    try {
      await writeFile(draft, chunks, { mode: 0o600 });
      await rename(draft, this.file);
      return true;
    } catch (error) {
      await rm(draft, { force: true });
      if (errorCode(error) === 'ENOSPC') {
        return false;
      }
      throw error;
    }
  }
}
