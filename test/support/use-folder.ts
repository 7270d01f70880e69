import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach } from '@jest/globals';

/** A new folder for each test. */
export function useFolder(): { path: string } {
  const folder = { path: '' };
  beforeEach(() => {
    folder.path = realpathSync(mkdtempSync(path.join(tmpdir(), 'slipway-test-')));
  });
  afterEach(() => {
    rmSync(folder.path, { recursive: true, force: true, maxRetries: 10 });
  });
  return folder;
}
