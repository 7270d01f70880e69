import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeEach } from '@jest/globals';

/** A new folder for each test, and paths in it. They are removed behind the last test, when nothing runs in them. */
export function temporaryFolder(): (...names: string[]) => string {
  const made: string[] = [];
  beforeEach(() => {
    made.push(realpathSync(mkdtempSync(path.join(tmpdir(), 'test-'))));
  });
  afterAll(() => {
    made.forEach((folder) => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  });
  return (...names) => path.join(made.at(-1) ?? '', ...names);
}
