import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeResponse, FakeServer } from '../../../../test/fakes/fake-server.js';
import { RemoteAccess } from '../git/remote-access.js';
import { toolEnvironment } from '../tool-view.js';
import { createPullRequestTool, postPullRequest } from './git.tools.js';
import { type Tool, ToolInputError } from './tool.js';

let folder: string;
let work: string;
let service: FakeServer;
let answer: FakeResponse;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pull-request-'));
  work = join(folder, 'work');
  git(folder, 'init', '-q', '--bare', 'origin.git');
  git(folder, 'clone', '-q', 'origin.git', 'work');
  writeFileSync(join(work, 'a.txt'), 'a');
  git(work, 'checkout', '-q', '-b', 'fix/it');
  git(work, 'add', '.');
  git(work, '-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'fix it');
  answer = { status: 201, body: { number: 7, url: 'https://example.com/pull/7' } };
  service = await FakeServer.start(() => answer);
});

afterEach(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

function tool(): Tool {
  const open = postPullRequest({
    url: `${service.origin}/pull-requests`,
    sessionKey: 'session-key',
    conversationId: 'c1',
  });
  const access = new RemoteAccess({
    view: { environment: toolEnvironment(process.env), wrapper: [] },
    privateFolder: join(folder, 'private'),
    credentials: () => [],
  });
  const push = async (cwd: string, branch: string, signal: AbortSignal) =>
    await access.push(cwd, branch, signal);
  return createPullRequestTool({ open, push }, () => work);
}

async function create(input: Record<string, unknown> = {}) {
  const call = tool().prepare({ source_branch: 'fix/it', title: 'Fix it', body: 'Because.', ...input });
  const observation = await call.run({
    workingDir: work,
    environment: {},
    signal: new AbortController().signal,
  });
  return { ...observation, text: JSON.stringify(observation.content) };
}

describe('create_pull_request', () => {
  it('pushes the branch and has the pull request opened', async () => {
    const result = await create({ target_branch: 'main', draft: true });
    expect(result).toMatchObject({ kind: 'MCPToolObservation', is_error: false });
    expect(result.text).toContain('Opened pull request 7: https://example.com/pull/7');
    expect(git(join(folder, 'origin.git'), 'rev-parse', 'fix/it')).toBe(git(work, 'rev-parse', 'HEAD'));
    expect(service.requests).toMatchObject([
      { method: 'POST', path: '/pull-requests', headers: { 'x-session-api-key': 'session-key' } },
    ]);
    expect(JSON.parse(service.requests[0]?.body ?? '')).toEqual({
      conversation_id: 'c1',
      source_branch: 'fix/it',
      target_branch: 'main',
      title: 'Fix it',
      body: 'Because.',
      draft: true,
    });
  });

  it('runs no program of the repository', async () => {
    const hook = join(work, '.git/hooks/pre-push');
    writeFileSync(hook, '#!/bin/sh\ntouch hooked\nexit 1\n');
    chmodSync(hook, 0o755);
    expect(await create()).toMatchObject({ is_error: false });
    expect(git(work, 'status', '--porcelain')).toBe('');
  });

  it('reports why the push failed, and opens nothing then', async () => {
    const result = await create({ source_branch: 'no-such-branch' });
    expect(result).toMatchObject({ is_error: true });
    expect(result.text).toMatch(/git push failed[^]*no-such-branch/);
    expect(service.requests).toEqual([]);
  });

  it('reports why the pull request was not opened', async () => {
    answer = { status: 422, body: { detail: 'A pull request exists already.' } };
    const result = await create();
    expect(result.text).toContain('The branch is pushed, but');
    expect(result.text).toContain('422: A pull request exists already.');
  });

  it.each(['--force', 'a b', 'a:b', '', '+x y'])('rejects the branch %j', (source_branch) => {
    expect(() => tool().prepare({ source_branch, title: 't', body: '' })).toThrow(ToolInputError);
  });
});
