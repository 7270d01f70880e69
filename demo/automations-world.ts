import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { addCheck } from '../test/fakes/fake-followed.js';
import type { FakeChangeRequest, FakeCheck, FakeIssue, FakeWorld } from '../test/fakes/fake-world.js';
import { type Demo, showPushes } from './start-demo.js';

const run = promisify(execFile);

export const LOOP_REPOSITORY = 'quayside/label-printer';
export const LOOP_BRANCH = 'fix/postcodes';
export const LOOP_ISSUE: FakeIssue = {
  repository: LOOP_REPOSITORY,
  number: 23,
  title: 'Labels for 01067 Dresden say 1067',
  updatedAt: new Date().toISOString(),
};

/** An addition takes the leading zero of a postcode away; so does printf with `%05d`, for which it is octal. */
const FILES = {
  'label.sh': '# Prints the postcode of a label.\nexpr "$1" + 0\n',
  'check.sh': `for code in 21073 01067; do
  printed=$(sh label.sh "$code")
  if [ "$printed" != "$code" ]; then
    echo "FAIL: $code is printed as $printed"
    exit 1
  fi
done
echo "ok: 2 postcodes"
`,
};

/** Adds an issue and its repository to the demo's world. */
export async function addIssue({ worlds: { github }, repositories }: Demo): Promise<void> {
  await repositories.commit(LOOP_REPOSITORY, 'main', FILES);
  github.issues.push(LOOP_ISSUE);
  const [repository] = github.repositories.filter(({ name }) => name === LOOP_REPOSITORY);
  Object.assign(repository ?? {}, { branches: [LOOP_BRANCH] });
}

/** @throws Error when the agent has opened none */
export function openedPullRequest({ changeRequests }: FakeWorld): FakeChangeRequest {
  const opened = changeRequests.find(({ sourceBranch }) => sourceBranch === LOOP_BRANCH);
  if (!opened) {
    throw new Error('the agent opened no pull request');
  }
  return opened;
}

/** A check of the commit that was pushed last. */
export async function beginCheck(demo: Demo, change: FakeChangeRequest): Promise<FakeCheck> {
  await showPushes(demo.worlds.github, demo.repositories);
  return addCheck(change, 'labels');
}

/** Really runs the check, as a CI does. */
export async function runCheck({ worlds, repositories }: Demo, check: FakeCheck): Promise<FakeCheck> {
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-demo-ci-'));
  try {
    const host = repositories.origin.replace('//', `//x-access-token:${worlds.github.token}@`);
    await run('git', ['clone', '--quiet', '--branch', LOOP_BRANCH, `${host}/${LOOP_REPOSITORY}.git`, folder]);
    const { stdout, status } = spawnSync('sh', ['check.sh'], { cwd: folder, encoding: 'utf8' });
    return Object.assign(check, { log: stdout, state: status === 0 ? 'passed' : 'failed' });
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
