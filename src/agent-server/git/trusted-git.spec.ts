import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { trustedGit } from './trusted-git.js';

const NOTHING_HERE = path.join(tmpdir(), 'no', 'such', 'folder');

it.each([
  ['there is no git', tmpdir(), NOTHING_HERE, 'There is no git in this sandbox'],
  ['the folder is not there', NOTHING_HERE, process.env['PATH'] ?? '', 'ENOENT'],
])('says so when %s', async (_, cwd, PATH, message) => {
  const asked = trustedGit({
    args: ['--version'],
    cwd,
    environment: { PATH },
    credentials: [],
    timeoutMs: 5000,
  });
  await expect(asked).rejects.toThrow(message);
});
