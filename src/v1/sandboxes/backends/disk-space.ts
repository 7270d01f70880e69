import { statfs } from 'node:fs/promises';
import { jsonText } from '@slipway/common/json-access.js';

const MEBIBYTE = 1024 * 1024;
/** The free space that sandboxes leave by default. Below it none starts, and one that fills the disk is ended. */
export const MIN_FREE_BYTES = 512 * MEBIBYTE;
const MIN_FREE_FILES = 10_000;
const INVISIBLE = new Set(['ENOENT', 'ENOTDIR', 'EACCES']);

export interface DiskSpace {
  /** Bytes that users other than root may still write. */
  freeBytes: number;
  totalBytes: number;
  /** Number of files that can still be made; null where the file system has no limit. */
  freeFiles: number | null;
}

/** The disk that holds a folder; null when the folder cannot be seen from here. */
export async function diskSpace(folder: string): Promise<DiskSpace | null> {
  try {
    const { bavail, blocks, bsize, files, ffree } = await statfs(folder);
    // File systems without a fixed number of files report 0 of 0.
    const freeFiles = files > 0 ? ffree : null;
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize, freeFiles };
  } catch (error) {
    if (INVISIBLE.has(jsonText(error, 'code') ?? '')) {
      return null;
    }
    throw error;
  }
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
