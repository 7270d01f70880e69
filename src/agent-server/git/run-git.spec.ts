import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { trustedGit } from './run-git.js';

const MISSING_FOLDER = path.join(tmpdir(), 'no', 'such', 'folder');

it.each([
  ['there is no git', tmpdir(), MISSING_FOLDER, 'There is no git in this sandbox'],
  ['the folder is missing', MISSING_FOLDER, process.env['PATH'] ?? '', 'ENOENT'],
])('reports that %s', async (_, cwd, PATH, message) => {
  const run = trustedGit({
    args: ['--version'],
    cwd,
    environment: { PATH },
    credentials: [],
    timeoutMs: 5000,
  });
  await expect(run).rejects.toThrow(message);
});
