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
