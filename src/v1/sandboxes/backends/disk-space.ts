import { statfs } from 'node:fs/promises';
import { jsonText } from '../../../common/json-access.js';

/** How full a disk is. */
export interface DiskSpace {
  /** What whoever is not root may still write. */
  freeBytes: number;
  totalBytes: number;
}

/** Not there, or in a folder that we may not enter. */
const OUT_OF_SIGHT = new Set(['ENOENT', 'ENOTDIR', 'EACCES']);

/** The disk that a folder lies on; null when the folder cannot be seen from here. */
export async function diskSpace(folder: string): Promise<DiskSpace | null> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  } catch (error) {
    if (OUT_OF_SIGHT.has(jsonText(error, 'code') ?? '')) {
      return null;
    }
    throw error;
  }
}

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
