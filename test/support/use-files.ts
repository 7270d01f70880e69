import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';

/** A folder with files, by their paths in it, from before the tests of a file or a `describe` until after them. */
export function useFiles(files: Record<string, string>): string {
  const folder = path.join(tmpdir(), `slipway-test-${randomUUID()}`);
  beforeAll(async () => {
    for (const [name, text] of Object.entries(files)) {
      const file = path.join(folder, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  });
  afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}
