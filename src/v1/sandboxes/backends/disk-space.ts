import { statfs } from 'node:fs/promises';
import { jsonText } from '../../../common/json-access.js';

const MEBIBYTE = 1024 * 1024;
/** No sandbox starts with less free space: its own files, and everything else on the disk, need some. */
export const MIN_FREE_BYTES = 200 * MEBIBYTE;
/** The folder does not exist, or we may not enter it. */
const INVISIBLE = new Set(['ENOENT', 'ENOTDIR', 'EACCES']);

/** How full a disk is. */
export interface DiskSpace {
  /** What users other than root may still write. */
  freeBytes: number;
  totalBytes: number;
}

/** The disk that holds a folder; null when the folder cannot be seen from here. */
export async function diskSpace(folder: string): Promise<DiskSpace | null> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  } catch (error) {
    if (INVISIBLE.has(jsonText(error, 'code') ?? '')) {
      return null;
    }
    throw error;
  }
}

/**
 * Why a nearly full disk prevents a start; null when it does not, or when nothing is known about the disk.
 *
 * @param disk what users call it: "the disk of DATA_DIR"
 */
export function spaceProblem(space: DiskSpace | null, minFreeBytes: number, disk: string): string | null {
  if (space === null || space.freeBytes >= minFreeBytes) {
    return null;
  }
  const [free, needed] = [space.freeBytes, minFreeBytes].map((bytes) => Math.floor(bytes / MEBIBYTE));
  return `The sandbox cannot be started: ${disk} has ${free} MB free and ${needed} MB are needed. Remove sandboxes or free some space.`;
}
