import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Runs `work` with a temporary folder, which is gone afterwards. */
export async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-bench-'));
  try {
    // Under root PostgreSQL runs as another user, who has to get in.
    await chmod(folder, 0o711);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
