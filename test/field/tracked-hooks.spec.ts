import { expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { PRE_COMMIT_HOOK } from '../../src/v1/app-conversations/start/set-up.step.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const folder = temporaryFolder();

function run(command: string): string {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder(),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
  };
  const { stdout, stderr } = spawnSync('bash', ['-c', command], { cwd: folder(), env, encoding: 'utf8' });
  return stdout + stderr;
}

function write(name: string, text: string): void {
  writeFileSync(folder(name), text);
  chmodSync(folder(name), 0o755);
}

// Repositories with husky or a folder such as .githooks have their hooks among their files.
it.each(['.husky', '.githooks'])('a hook of the service changes no file of %s, and both run', (hooks) => {
  for (const each of [hooks, '.openhands']) {
    mkdirSync(folder(each));
  }
  write(`${hooks}/pre-commit`, '#!/bin/sh\necho theirs >>ran\n');
  write(`${hooks}/commit-msg`, '#!/bin/sh\necho "message $(cat "$1")" >>ran\n');
  write('.openhands/pre-commit.sh', 'echo ours >>ran\n');
  run(
    `git init -q && git config user.name a && git config user.email a@b && echo ran >.gitignore && git add . && git commit -qm first && git config core.hooksPath ${hooks}`,
  );

  expect(run(PRE_COMMIT_HOOK) + run(PRE_COMMIT_HOOK)).toBe('');

  expect(run('git status --porcelain')).toBe('');
  run('git commit -q --allow-empty -m second');
  expect(run('cat ran')).toBe('theirs\nours\nmessage second\n');
  write(`${hooks}/pre-commit`, '#!/bin/sh\nexit 1\n');
  run('git commit -q --allow-empty -m third');
  expect(run('git log -1 --format=%s; cat ran')).toBe('second\ntheirs\nours\nmessage second\n');
});
