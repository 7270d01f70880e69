import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type FakeResponse, FakeServer, type Fault } from '../../../../test/fakes/fake-server.js';
import type { GitOutcome } from '../git/run-git.js';
import { createPullRequestTool, postPullRequest, postPush } from './git.tools.js';
import { type Tool, ToolInputError } from './tool.js';

const PUSHED: GitOutcome = { ok: true, timedOut: false, output: '' };

let service: FakeServer;
let answer: FakeResponse;
let outcome: GitOutcome;
let pushed: string[];

beforeEach(async () => {
  answer = { status: 201, body: { number: 7, url: 'https://example.com/pull/7' } };
  outcome = PUSHED;
  pushed = [];
  service = await FakeServer.start(() => answer);
});

afterEach(async () => {
  await service.close();
});

function tool(): Tool {
  const open = postPullRequest({
    url: `${service.origin}/pull-requests`,
    sessionKey: 'session-key',
    conversationId: 'c1',
  });
  const push = async (...[folder, branch]: [string, string, AbortSignal]): Promise<GitOutcome> => {
    pushed.push(`${branch} of ${folder}`);
    return await Promise.resolve(outcome);
  };
  return createPullRequestTool({ open, push }, () => '/workspace');
}

async function create(input: Record<string, unknown> = {}) {
  const call = tool().prepare({ source_branch: 'fix/it', title: 'Fix it', body: 'Because.', ...input });
  const observation = await call.run({
    workingDir: '/workspace',
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
    expect(pushed).toEqual(['fix/it of /workspace']);
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

  it('reports why the push failed, and opens nothing then', async () => {
    outcome = { ok: false, timedOut: false, output: 'There is no local branch.' };
    const result = await create();
    expect(result).toMatchObject({ is_error: true });
    expect(result.text).toMatch(/git push failed[^]*There is no local branch/);
    expect(service.requests).toEqual([]);
  });

  it('reports why the pull request was not opened', async () => {
    answer = { status: 422, body: { detail: 'A pull request exists already.' } };
    const result = await create();
    expect(result.text).toContain('The branch is pushed, but');
    expect(result.text).toContain('422: A pull request exists already.');
  });

  it.each<Fault>([
    { kind: 'status', status: 429, headers: { 'retry-after': '0' } },
    { kind: 'status', status: 503, headers: { 'retry-after': '0' } },
    { kind: 'reset' },
  ])('asks again after %j', async (fault) => {
    service.injectFault(fault, { times: 1 });
    expect(await create()).toMatchObject({ is_error: false });
    expect(service.requests.map(({ body }) => body)).toEqual(Array(2).fill(service.requests[0]?.body));
  });

  it('has the service push elsewhere, from the folder that it works in', async () => {
    const callback = {
      url: `${service.origin}/pull-requests`,
      sessionKey: 'session-key',
      conversationId: 'c1',
    };
    const push = postPush(callback);
    answer = { status: 200, body: { repository: 'mona/app', output: 'Pushed to mona/app.' } };
    const never = new AbortController().signal;
    expect(await push('/workspace/app', 'fix/it', never)).toEqual({
      ...PUSHED,
      output: 'Pushed to mona/app.',
    });
    expect(service.requests).toMatchObject([{ path: '/pull-requests/push' }]);
    const sent = { conversation_id: 'c1', branch: 'fix/it', directory: '/workspace/app' };
    expect(JSON.parse(service.requests[0]?.body ?? '')).toEqual(sent);
    answer = { status: 409, body: { detail: 'It may not be forked.' } };
    await expect(push('/workspace/app', 'fix/it', never)).rejects.toThrow('409: It may not be forked.');
  });

  it.each(['--force', 'a b', 'a:b', '', '+x y'])('rejects the branch %j', (source_branch) => {
    expect(() => tool().prepare({ source_branch, title: 't', body: '' })).toThrow(ToolInputError);
  });
});
