import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { FollowWorker } from '../../src/follow/follow.worker.js';
import { startFakeBitbucketDataCenter } from '../fakes/fake-bitbucket-data-center.js';
import { addCheck, addComment, followedOf, push } from '../fakes/fake-followed.js';
import type { FakeServer } from '../fakes/fake-server.js';
import type { FakeChangeRequest, FakeWorld } from '../fakes/fake-world.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { FollowsClient, withoutOwnLooks } from '../support/follows-client.js';
import { type GitHosts, startGitHosts } from '../support/git-hosts.js';
import { StartsClient } from '../support/starts-client.js';
import { TokensClient } from '../support/tokens-client.js';
import { until } from '../support/until.js';

const REPOSITORY = 'octo/app';
const NUMBER = 15;
const dataCenterWorld: FakeWorld = { ...sampleWorld(), token: 'datacenter-4217token', issues: [] };

let hosts: GitHosts;
let dataCenter: FakeServer;
let backend: InProcessSandboxBackend;
let app: TestApp;

beforeAll(async () => {
  hosts = await startGitHosts();
  dataCenter = await startFakeBitbucketDataCenter(dataCenterWorld);
  backend = new InProcessSandboxBackend();
  const environment = {
    ...hosts.environment,
    GIT_HOST_ALLOWLIST: dataCenter.origin,
    FOLLOW_POLL_SECONDS: '3600',
  };
  app = await withoutOwnLooks(() => createTestApp(environment, undefined, { sandboxBackend: backend }));
});

afterAll(async () => {
  await app.close();
  await backend.close();
  await dataCenter.close();
  await hosts.close();
});

function changeOf({ changeRequests }: FakeWorld): FakeChangeRequest {
  const found = changeRequests.find(
    ({ repository, number }) => repository === REPOSITORY && number === NUMBER,
  );
  if (found === undefined) {
    throw new Error('the sample world has another pull request');
  }
  return found;
}

it('another host, of the user: one round from a failing check and a comment to green', async () => {
  const user = await app.createUser();
  const follows = new FollowsClient([app], user);
  await new StartsClient(app, user).settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });
  await new TokensClient(app, user).postTokens({
    bitbucket: { token: dataCenterWorld.token, host: dataCenter.origin },
  });
  const change = changeOf(dataCenterWorld);
  const conversation = await follows.start({ repository: REPOSITORY, number: NUMBER, provider: 'bitbucket' });
  await follows.idle(conversation);

  addCheck(change, 'test', { state: 'failed', log: 'Expected 1, got 2' });
  const comment = addComment(change, 'alice', 'Why not 2?', { path: 'src/a.ts', line: 4 });
  await follows.until(conversation, { state: 'watching', round: 1 });

  const text = (await follows.told(conversation)).at(-1);
  expect(text).toContain('The check test failed');
  expect(text).toContain('on src/a.ts, line 4:\n> Why not 2?');
  const answers = followedOf(change).comments.filter(({ body }) => body.includes('(Slipway, round 1 of 5)'));
  expect(answers).toMatchObject([{ root: comment.id, author: 'mona' }]);

  comment.resolved = true;
  push(change, 'b'.repeat(40));
  addCheck(change, 'test', { state: 'passed' });
  await follows.rest(conversation);
  await follows.until(conversation, { state: 'reached', round: 1 });
  expect(await follows.state(conversation)).toMatchObject({
    pull_request: { repository: REPOSITORY, number: NUMBER, url: expect.stringContaining(String(NUMBER)) },
  });
});

it('a host that does not answer holds up the stop of the service only so long', async () => {
  const user = await app.createUser();
  const follows = new FollowsClient([app], user);
  await new StartsClient(app, user).settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });
  await new TokensClient(app, user).post(hosts.tokens);
  const conversation = await follows.start({ repository: REPOSITORY, number: NUMBER });
  await follows.idle(conversation);
  hosts.clearFaults();
  hosts.github.injectFault({ kind: 'hang' });
  const looked = follows.look(conversation);
  await until(() => hosts.github.requests.length > 0);

  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
  const stopped = app.app
    .get(FollowWorker)
    .beforeApplicationShutdown()
    .then(() => 'stopped');
  await jest.advanceTimersByTimeAsync(10_000);
  jest.useRealTimers();

  expect(await Promise.race([stopped, turn('waiting')])).toBe('stopped');

  hosts.clearFaults();
  hosts.github.hangUp();
  await looked;
});
