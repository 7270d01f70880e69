import { randomBytes } from 'node:crypto';
import { open, rename, rm, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from '@slipway/common/errors/error-message.js';

/** Enough for a recovery, which begins a segment of the write-ahead log (16 MiB), and for removing files. */
const RESERVE_BYTES = 64 * 2 ** 20;
/** With less than a segment of the log left, the server's next write may be its last one. */
const FULL_BYTES = 16 * 2 ** 20;
const PATIENCE_MS = 5_000;
/** A reserve is made when the disk has this many times its size. */
const ROOM = 4;
const CHUNK_BYTES = 2 ** 20;

export interface DiskReserveOptions {
  bytes?: number;
  fullBytes?: number;
  patienceMs?: number;
}

export type ReserveChange = 'made' | 'released' | null;

/** A file that is removed when the embedded database's disk is full, so that the server can write again. */
export class DiskReserve {
  private readonly bytes: number;
  private readonly fullBytes: number;
  private readonly patienceMs: number;
  private fullSince: number | null = null;

  constructor(
    private readonly file: string,
    { bytes = RESERVE_BYTES, fullBytes = FULL_BYTES, patienceMs = PATIENCE_MS }: DiskReserveOptions = {},
  ) {
    this.bytes = bytes;
    this.fullBytes = fullBytes;
    this.patienceMs = patienceMs;
  }

  /** Bytes that the server can still write, without the reserve. */
  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(path.dirname(this.file));
    return bavail * bsize;
  }

  /** Checks the disk, and releases or creates the reserve if necessary. */
  async look(): Promise<ReserveChange> {
    const free = await this.freeBytes();
    const held = await this.isHeld();
    if (free >= this.fullBytes) {
      this.fullSince = null;
      return !held && free >= this.bytes * ROOM && (await this.make()) ? 'made' : null;
    }
    this.fullSince ??= performance.now();
    if (!held || performance.now() - this.fullSince < this.patienceMs) {
      return null;
    }
    await rm(this.file, { force: true });
    return 'released';
  }

  private async isHeld(): Promise<boolean> {
    try {
      return (await stat(this.file)).size > 0;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') {
        return false;
      }
      throw error;
    }
  }

  private async make(): Promise<boolean> {
    const draft = `${this.file}.new`;
    // Random, as a file system that compresses would keep nothing of zeros.
    const chunk = randomBytes(CHUNK_BYTES);
    const handle = await open(draft, 'w', 0o600);
    try {
      for (let written = 0; written < this.bytes; written += CHUNK_BYTES) {
        await handle.write(chunk);
      }
      await rename(draft, this.file);
      return true;
    } catch (error) {
      await rm(draft, { force: true });
      if (errorCode(error) === 'ENOSPC') {
        return false;
      }
      throw error;
    } finally {
      await handle.close();
    }
  }
}
