import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { jsonText } from '@slipway/common/json-access.js';
import request from 'supertest';
import { addCheck, addComment, approve, endWith, push } from '../fakes/fake-followed.js';
import {
  checkRunDelivery,
  commentDelivery,
  deliver,
  type GithubDelivery,
  issueLabeledDelivery,
  pingDelivery,
  pullRequestDelivery,
  repositoryDeletedDelivery,
  reviewDelivery,
  threadResolvedDelivery,
} from '../fakes/fake-github.webhooks.js';
import type { FakeChangeRequest, FakeIssue, FakeWorld } from '../fakes/fake-world.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';

const SECRET = 'a-secret-of-the-host';

let app: TestApp;
let user: TestUser;

beforeAll(async () => {
  app = await createTestApp();
  user = await app.createUser();
  await request(app.url)
    .post('/api/automation/v1/webhooks')
    .set(user.headers)
    .send({ name: 'Host', source: 'github', webhook_secret: SECRET })
    .expect(201);
});

afterAll(async () => {
  await app.close();
});

const HAPPENING: [
  string,
  (world: FakeWorld, change: FakeChangeRequest, issue: FakeIssue) => GithubDelivery,
][] = [
  ['ping', pingDelivery],
  ['issues.labeled', (world, _change, issue) => issueLabeledDelivery(world, issue, 'agent')],
  ['check_run.created', (_world, change) => checkRunDelivery(change, addCheck(change, 'unit'))],
  [
    'check_run.completed',
    (_world, change) => checkRunDelivery(change, addCheck(change, 'unit', { state: 'failed' })),
  ],
  [
    'pull_request_review_comment.created',
    (_world, change) => commentDelivery(change, addComment(change, 'ada', 'Why?', { path: 'a.ts' })),
  ],
  [
    'issue_comment.created',
    (_world, change) => commentDelivery(change, addComment(change, 'ada', '@slipway stop')),
  ],
  [
    'pull_request_review.submitted',
    (_world, change) => {
      approve(change, 'ada');
      return reviewDelivery(change, 'approved', 'ada');
    },
  ],
  [
    'pull_request.synchronize',
    (_world, change) => {
      push(change, 'c0ffee0000000000000000000000000000000000');
      return pullRequestDelivery(change, 'synchronize', 'mona');
    },
  ],
  [
    'pull_request.closed',
    (_world, change) => {
      endWith(change, 'merged');
      return pullRequestDelivery(change, 'closed', 'ada');
    },
  ],
  ['pull_request_review_thread.resolved', (_world, change) => threadResolvedDelivery(change, 'ada')],
  ['repository.deleted', (_world, change) => repositoryDeletedDelivery(change.repository, 'ada')],
];

it.each(HAPPENING)('takes %s as GitHub delivers it, once', async (key, happen) => {
  const world = sampleWorld();
  const [change] = world.changeRequests;
  const [issue] = world.issues;
  const delivery = change && issue && happen(world, change, issue);
  const hook = { url: `${app.url}/api/automation/v1/events/${user.id}/github`, secret: SECRET };
  const response = delivery && (await deliver(hook, delivery, `delivery of ${key}`));
  const body: unknown = await response?.json();
  expect([response?.status, body]).toEqual([202, expect.objectContaining({ event_id: expect.any(String) })]);
  const stored = await request(app.url)
    .get(`/api/automation/v1/events/${jsonText(body, 'event_id')}/matches`)
    .set(user.headers)
    .expect(200);
  expect(stored.body).toMatchObject({ source: 'github', key });
  const again = delivery && (await deliver(hook, delivery, `delivery of ${key}`));
  expect([again?.status, await again?.json()]).toEqual([200, expect.objectContaining({ duplicate: true })]);
});
