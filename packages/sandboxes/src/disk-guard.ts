import pLimit from 'p-limit';
import { statfs } from 'node:fs/promises';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { type DiskSpace, SandboxBackendError } from './sandbox-backend.js';

const MEBIBYTE = 1024 * 1024;
const MAX_MEASURED = 10_000;
/** Slower growth is a log or a cache, which does not fill a disk. */
const NOTABLE_BYTES = 16 * MEBIBYTE;
const NOTABLE_FILES = 1000;
const MEASURES_AT_ONCE = 4;
/** Pause between two measurements while the disk has room, and between two of the same sandbox. */
const PAUSE_MS = 5_000;
const REPEAT_MS = 60_000;
const EXCUSE_MS = 10 * 60_000;

export interface GuardedSandboxes {
  running(): Promise<string[]>;
  measure(id: string): Promise<number | null>;
  countFiles(id: string): Promise<number | null>;
  freeze(id: string): Promise<void>;
  thaw(id: string): Promise<void>;
  /** Ends the program at once. `cause` is a sentence for the owner. */
  end(id: string, cause: string): Promise<void>;
}

interface DiskGuardOptions {
  disk: string;
  /** Free bytes that sandboxes must leave to everything else on the disk. */
  reserveBytes: number;
  sandboxBytes: number;
}

const COUNTLESS = 'it has too many files to count';

interface Measure {
  bytes: number;
  at: number;
}

/** Keeps sandboxes from filling the disk of the database: below the reserve it ends the one that has grown most. */
export class DiskGuard {
  private readonly measured = new Map<string, Measure>();
  /** Sandboxes that were ended for their size and may run for a while so that files can be deleted. */
  private readonly excused = new Map<string, { until: number; bytes: number }>();
  /** One that cannot be thawed is tried again at the next check. */
  private readonly frozen = new Set<string>();
  private readonly limit = pLimit(MEASURES_AT_ONCE);
  private measuring = false;
  private nextAt = 0;
  private low: DiskSpace | null = null;

  constructor(
    private readonly options: DiskGuardOptions,
    private readonly sandboxes: GuardedSandboxes,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Checks the disk and acts; call it about twice a second. Without `space` it measures sandboxes only. */
  async check(space: DiskSpace | null): Promise<void> {
    try {
      await this.act(space);
    } finally {
      await Promise.all([...this.frozen].map(async (id) => await this.thaw(id)));
    }
  }

  private async act(space: DiskSpace | null): Promise<void> {
    if (space === null || (space.freeBytes >= this.options.reserveBytes && !lacksFiles(space))) {
      this.low = null;
      this.measureNext();
      return;
    }
    if (this.low === null || hasShrunk(this.low, space)) {
      await this.relieve(space);
      this.low = space;
    }
  }

  private async relieve(space: DiskSpace): Promise<void> {
    const ids = await this.sandboxes.running();
    ids.forEach((id) => this.frozen.add(id));
    const freezing = ids.map(async (id) => await this.sandboxes.freeze(id));
    try {
      await Promise.all(freezing);
      const found = await (lacksFiles(space) ? this.findCrowded(ids) : this.findGrown(ids));
      if (found !== null) {
        await this.sandboxes.end(found.id, this.fullDisk(space, found.size));
      }
    } finally {
      // If one cannot be frozen, others may still be freezing.
      await Promise.allSettled(freezing);
    }
  }

  private async thaw(id: string): Promise<void> {
    await this.sandboxes.thaw(id);
    this.frozen.delete(id);
  }

  private async findGrown(ids: readonly string[]): Promise<{ id: string; size: string } | null> {
    const grown = await this.ofAll(ids, async (id) => ({ id, ...(await this.growth(id)) }));
    const [first] = grown.toSorted((one, other) => other.growth - one.growth || other.bytes - one.bytes);
    return first === undefined || first.growth < NOTABLE_BYTES
      ? null
      : {
          id: first.id,
          size: Number.isFinite(first.bytes) ? `its files take ${megabytes(first.bytes)}` : COUNTLESS,
        };
  }

  private async findCrowded(ids: readonly string[]): Promise<{ id: string; size: string } | null> {
    const counted = await this.ofAll(ids, async (id) => ({
      id,
      files: (await this.sandboxes.countFiles(id)) ?? Number.POSITIVE_INFINITY,
    }));
    const [first] = counted.toSorted((one, other) => other.files - one.files);
    return first === undefined || first.files < NOTABLE_FILES
      ? null
      : { id: first.id, size: Number.isFinite(first.files) ? `it has ${first.files} files` : COUNTLESS };
  }

  private async ofAll<T>(ids: readonly string[], look: (id: string) => Promise<T>): Promise<T[]> {
    return await Promise.all(ids.map(async (id) => await this.limit(async () => await look(id))));
  }

  private fullDisk(space: DiskSpace, size: string): string {
    const { disk, reserveBytes } = this.options;
    const state = lacksFiles(space)
      ? `${disk} has no room for more files`
      : `${disk} has ${megabytes(space.freeBytes)} free, and ${megabytes(reserveBytes)} are kept for the service`;
    return `It was stopped because it was filling the disk: ${state}; ${size}. Delete the sandbox, or resume it when there is room again and delete files.`;
  }

  /** A sandbox that cannot be measured counts as grown without limit. */
  private async growth(id: string): Promise<{ growth: number; bytes: number }> {
    const before = this.measured.get(id)?.bytes ?? 0;
    const bytes = (await this.sandboxes.measure(id)) ?? Number.POSITIVE_INFINITY;
    this.measured.set(id, { bytes, at: this.now() });
    return { growth: bytes - before, bytes };
  }

  private measureNext(): void {
    if (this.measuring || this.now() < this.nextAt) {
      return;
    }
    this.measuring = true;
    this.nextAt = this.now() + PAUSE_MS;
    this.measureOldest()
      .catch(() => undefined)
      .finally(() => {
        this.measuring = false;
      });
  }

  private async measureOldest(): Promise<void> {
    const ids = await this.sandboxes.running();
    this.forget(new Set(ids));
    const [oldest] = ids.toSorted((one, other) => this.measuredAt(one) - this.measuredAt(other));
    if (oldest === undefined || this.measuredAt(oldest) > this.now() - REPEAT_MS) {
      return;
    }
    const bytes = await this.sandboxes.measure(oldest);
    if (bytes === null) {
      this.measured.set(oldest, { bytes: this.measured.get(oldest)?.bytes ?? 0, at: this.now() });
      return;
    }
    this.measured.set(oldest, { bytes, at: this.now() });
    await this.enforce(oldest, bytes);
  }

  private async enforce(id: string, bytes: number): Promise<void> {
    const { sandboxBytes } = this.options;
    if (sandboxBytes === 0 || bytes <= sandboxBytes) {
      this.excused.delete(id);
      return;
    }
    const excuse = this.excused.get(id);
    if (excuse !== undefined && this.now() < excuse.until && bytes <= excuse.bytes + NOTABLE_BYTES) {
      return;
    }
    await this.sandboxes.end(
      id,
      `It was stopped because its files take ${megabytes(bytes)} and ${megabytes(sandboxBytes)} are allowed. Delete it, or resume it and delete files within ${EXCUSE_MS / 60_000} minutes.`,
    );
    this.excused.set(id, { until: this.now() + EXCUSE_MS, bytes });
  }

  private measuredAt(id: string): number {
    return this.measured.get(id)?.at ?? Number.NEGATIVE_INFINITY;
  }

  /** The size of a paused sandbox is kept, so that only what is new after its resume counts as growth. */
  private forget(running: ReadonlySet<string>): void {
    for (const id of this.measured.keys()) {
      if (this.measured.size <= MAX_MEASURED) {
        break;
      }
      if (!running.has(id)) {
        this.measured.delete(id);
      }
    }
    for (const [id, { until }] of this.excused) {
      if (this.now() >= until && !running.has(id)) {
        this.excused.delete(id);
      }
    }
  }
}

function hasShrunk(before: DiskSpace, now: DiskSpace): boolean {
  return (
    now.freeBytes < before.freeBytes - NOTABLE_BYTES ||
    (now.freeFiles ?? 0) < (before.freeFiles ?? 0) - NOTABLE_FILES
  );
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / MEBIBYTE)} MB`;
}

/** The free space that sandboxes leave by default. Below it none starts, and one that fills the disk is ended. */
export const MIN_FREE_BYTES = 512 * MEBIBYTE;
const MIN_FREE_FILES = 10_000;
const INVISIBLE = ['ENOENT', 'ENOTDIR', 'EACCES'];

/** The disk that holds a folder; null when the folder cannot be seen from here. */
export async function diskSpace(folder: string): Promise<DiskSpace | null> {
  const found = await unlessCode(INVISIBLE, statfs(folder));
  if (found === null) {
    return null;
  }
  const { bavail, blocks, bsize, files, ffree } = found;
  // File systems without a fixed number of files report 0 of 0.
  const freeFiles = files > 0 ? ffree : null;
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize, freeFiles };
}

export function lacksFiles({ freeFiles }: DiskSpace): boolean {
  return freeFiles !== null && freeFiles < MIN_FREE_FILES;
}

/** Why a nearly full disk prevents a start; null when it does not. `disk` is its name: "the disk of DATA_DIR". */
export function spaceProblem(space: DiskSpace | null, minFreeBytes: number, disk: string): string | null {
  if (space === null || (space.freeBytes >= minFreeBytes && !lacksFiles(space))) {
    return null;
  }
  if (lacksFiles(space)) {
    return `The sandbox cannot be started: ${disk} has no room for more files. Remove sandboxes or delete files.`;
  }
  const [free, needed] = [space.freeBytes, minFreeBytes].map((bytes) => Math.floor(bytes / MEBIBYTE));
  return `The sandbox cannot be started: ${disk} has ${free} MB free and ${needed} MB are needed. Remove sandboxes or free some space.`;
}

/** @throws SandboxBackendError when a nearly full disk prevents a start */
export function requireSpace(space: DiskSpace | null, minFreeBytes: number, disk: string): void {
  const problem = spaceProblem(space, minFreeBytes, disk);
  if (problem !== null) {
    throw new SandboxBackendError(problem);
  }
}
