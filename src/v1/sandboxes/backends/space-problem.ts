import type { DiskSpace } from './disk-space.js';

/** Nothing is started with less free space than this: its own files, and what else lies on the disk, need some. */
export const MIN_FREE_BYTES = 200 * 1024 * 1024;

const MEGABYTE = 1024 * 1024;

/**
 * Why a sandbox cannot be started on a disk that is nearly full; null where it can, and where nothing is known.
 *
 * @param disk what people call it: "the disk of DATA_DIR"
 */
export function spaceProblem(space: DiskSpace | null, minFreeBytes: number, disk: string): string | null {
  if (space === null || space.freeBytes >= minFreeBytes) {
    return null;
  }
  const [has, needs] = [space.freeBytes, minFreeBytes].map((bytes) => Math.floor(bytes / MEGABYTE));
  return `The sandbox cannot be started: ${disk} has ${has} MB free and ${needs} MB are needed. Remove sandboxes or free some space.`;
}
