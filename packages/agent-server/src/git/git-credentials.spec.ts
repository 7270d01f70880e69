import { execFileSync } from 'node:child_process';
import { expect, it } from '@jest/globals';
import { gitVariables, shellCredentials } from './run-git.js';

const CREDENTIALS = [
  { origin: 'https://github.com', username: 'x-access-token', password: `it's "a" $secret` },
  { origin: 'http://git.example:8080', username: 'b', password: 'second' },
];

/** The credentials that git itself finds; the rest of its configuration belongs to this test. */
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

it('gives each server its own credentials', () => {
  const variables = gitVariables({ credentials: CREDENTIALS, identity: null });
  expect(ask('https://github.com/a/b.git', variables)).toContain(
    `username=x-access-token\npassword=it's "a" $secret\n`,
  );
  expect(ask('http://git.example:8080/x', variables)).toContain('username=b\npassword=second\n');
  for (const other of ['http://github.com/a', 'https://github.com.example/a', 'http://git.example/x']) {
    expect(ask(other, variables)).not.toMatch(/secret|second/);
  }
});

it('shows bearer tokens to their repositories alone, and none of those before', () => {
  const [first, second] = ['one', 'two'].map((password) => ({
    origin: 'https://git.example',
    username: 'b',
    password,
    bearer: 'https://git.example/bitbucket/scm',
  }));
  const variables = gitVariables({
    credentials: [...CREDENTIALS, ...(first && second ? [first, second] : [])],
    identity: null,
  });
  const headers = (url: string) =>
    execFileSync('git', ['config', '--get-urlmatch', 'http', url], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], GIT_CONFIG_GLOBAL: '/dev/null', ...variables },
    });
  const shown = 'http.extraheader Authorization: Bearer two\n';
  expect(headers('https://git.example/bitbucket/scm/a/b.git')).toBe(shown);
  // Git LFS adds headers to that which Data Center gives it for its files; another program may be beside it.
  for (const other of ['git.example/bitbucket/rest/git-lfs/storage/a/b/c', 'git.example/gitlab/a.git']) {
    expect(() => headers(`https://${other}`)).toThrow('Command failed');
  }
});

it('configures the user, and adds settings', () => {
  const identity = { name: 'Ada', email: 'ada@example.com' };
  const variables = gitVariables({ credentials: [], identity }, [['core.x', 'y']]);
  const read = (key: string) =>
    execFileSync('git', ['config', key], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], ...variables },
    });
  expect(['user.name', 'user.email', 'core.x'].map(read)).toEqual(['Ada\n', 'ada@example.com\n', 'y\n']);
});

it('has no variables without credentials, identity or settings', () => {
  expect(gitVariables({ credentials: [], identity: null })).toEqual({});
});

it('keeps what is for one repository from the shell', () => {
  const own = { origin: 'https://own.example', username: 'c', password: 'third' };
  const bound = { ...own, repository: 'https://own.example/a/b' };
  const given = { credentials: [...CREDENTIALS, bound], identity: null };
  expect(shellCredentials({ ...given, expose: true })).toEqual(CREDENTIALS);
  expect(shellCredentials({ ...given, expose: false })).toEqual([]);
});
