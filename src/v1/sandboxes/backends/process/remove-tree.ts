import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { jsonText } from '../../../../common/json-access.js';

/** Removes a folder with all that is in it, folders too that their owner may not write (as some package caches are). */
export async function removeTree(folder: string): Promise<void> {
  const remove = async (): Promise<void> => await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  try {
    await remove();
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes(jsonText(error, 'code') ?? '')) {
      throw error;
    }
    await unlock(folder);
    await remove();
  }
}

async function unlock(folder: string): Promise<void> {
  if (!(await lstat(folder)).isDirectory()) {
    return;
  }
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) {
      await unlock(path.join(folder, entry.name));
    }
  }
}
