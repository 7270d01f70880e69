import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { gitVariables, trustedGit } from './run-git.js';

const CREDENTIALS = [
  { origin: 'https://github.com', username: 'x-access-token', password: `it's "a" $secret` },
  { origin: 'http://git.example:8080', username: 'b', password: 'second' },
];

/** What git itself finds; the rest of its configuration is that of this test. */
function ask(url: string, variables: Record<string, string>): string {
  try {
    return execFileSync('git', ['-c', 'credential.helper=!echo password=of-a-file;:', 'credential', 'fill'], {
      input: `url=${url}\n\n`,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        PATH: process.env['PATH'],
        GIT_TERMINAL_PROMPT: '0',
        GIT_CONFIG_GLOBAL: '/dev/null',
        ...variables,
      },
    });
  } catch {
    return '';
  }
}

it('answers each server its own credentials', () => {
  const variables = gitVariables({ credentials: CREDENTIALS, identity: null });
  expect(ask('https://github.com/a/b.git', variables)).toContain(
    `username=x-access-token\npassword=it's "a" $secret\n`,
  );
  expect(ask('http://git.example:8080/x', variables)).toContain('username=b\npassword=second\n');
  for (const other of ['http://github.com/a', 'https://github.com.example/a', 'http://git.example/x']) {
    expect(ask(other, variables)).not.toMatch(/secret|second/);
  }
});

it('gives git its user, and adds settings', () => {
  const identity = { name: 'Ada', email: 'ada@example.com' };
  const variables = gitVariables({ credentials: [], identity }, [['core.x', 'y']]);
  const read = (key: string) =>
    execFileSync('git', ['config', key], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], ...variables },
    });
  expect(['user.name', 'user.email', 'core.x'].map(read)).toEqual(['Ada\n', 'ada@example.com\n', 'y\n']);
});

it('is nothing without anything to say', () => {
  expect(gitVariables({ credentials: [], identity: null })).toEqual({});
});

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
