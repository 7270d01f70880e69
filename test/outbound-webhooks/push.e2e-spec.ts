import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type request from 'supertest';
import type { WebhookEvent } from '../../src/outbound-webhooks/webhook-event.js';
import { FollowedConversationRepository } from '../../src/v1/events/followed-conversation.repository.js';
import { FakeBrowser, startPushService, type ReceivedPush } from '../fakes/fake-push-service.js';
import type { FakeServer } from '../fakes/fake-server.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { until } from '../support/until.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';
import { WebhooksClient } from '../support/webhooks-client.js';

const SUBSCRIPTIONS = '/api/v1/push/subscriptions';
const ID = '8d7b2f7e1c0a4f3f9b6f2b0c5d4e3a21';

let service: FakeServer;
let user: TestUser;
let browser: FakeBrowser;

const app = useTestApp(async () => {
  service = await startPushService();
  return { WEBHOOK_HOST_ALLOWLIST: service.origin, PUBLIC_URL: 'https://slipway.example.com/at' };
});
afterAll(() => service.close());

beforeEach(async () => {
  user = await app.createUser();
  browser = newBrowser();
  service.requests.length = 0;
});

// What still waits would be sent to the next test.
afterEach(async () => {
  app.clock.resume();
  service.clearFaults();
  await app.dataSource.query('DELETE FROM push_subscriptions');
});

const newBrowser = (): FakeBrowser => new FakeBrowser(`${service.origin}/push/${randomUUID()}`);

function call(method: 'get' | 'post' | 'delete', who = user, path = SUBSCRIPTIONS): request.Test {
  return app.as(who).ask(method, path);
}

async function subscribe(of = browser, members: object = {}, who = user): Promise<void> {
  await call('post', who)
    .send({ ...of.subscription, ...members })
    .expect(201);
}

async function publish(event: WebhookEvent, who = user): Promise<void> {
  await new WebhooksClient(app, who).publish(event);
}

/** Has the worker look for what is due, as it does by itself every few seconds. */
async function look(): Promise<void> {
  await app.dataSource.query(`SELECT pg_notify('push_messages', '')`);
}

const event = (type: WebhookEvent['type'], members: object = {}, title = 'Mend it'): WebhookEvent => ({
  type,
  data: { conversation_id: ID, error: { code: 'x', detail: 'a secret of the log' }, ...members },
  title,
});

async function received(count: number, by = browser): Promise<ReceivedPush[]> {
  await until(() => service.requests.length >= count);
  return service.requests.map((each) => by.read(each));
}

async function rows(table: 'push_messages' | 'push_subscriptions'): Promise<number> {
  const [row] = await app.dataSource.query<[{ count: number }]>(`SELECT count(*)::int FROM ${table}`);
  return row.count;
}

async function isLeased(): Promise<boolean> {
  const leased = await app.dataSource.query('SELECT FROM push_messages WHERE leased_by IS NOT NULL');
  return leased.length > 0;
}

describe('a notification', () => {
  it('is encrypted for its browser, signed with the key of the service, and says a title, a state and a link', async () => {
    await subscribe();
    await publish(event('conversation.waiting_for_confirmation'));
    const [push] = await received(1);
    const { body: key } = await call('get', user, '/api/v1/push/key').expect(200);

    expect(push).toMatchObject({
      path: new URL(browser.endpoint).pathname,
      headers: { 'content-encoding': 'aes128gcm', ttl: '14400', urgency: 'high', topic: ID },
      signer: key.public_key,
      claims: { aud: service.origin, sub: 'https://slipway.example.com/at' },
    });
    expect(push?.message).toEqual({
      kind: 'waiting',
      title: 'Mend it',
      body: 'Waits for you',
      url: `https://slipway.example.com/at/console/conversations/${ID}`,
      tag: ID,
    });
    await until(async () => (await rows('push_messages')) === 0);
  });

  it('is made where the state of a conversation changes, with its title', async () => {
    await subscribe();
    const title = 'Of the row';
    const { id } = await new ConversationRows(app).conversation(user.id, { title }, FOLLOWED_ELSEWHERE);
    await app.app.get(FollowedConversationRepository).updateState(id, { executionStatus: 'finished' });

    expect((await received(1))[0]?.message).toMatchObject({ kind: 'finished', title: 'Of the row' });
  });

  it('comes for the kinds that were asked for, and from the events of webhooks alone', async () => {
    await subscribe(browser, { kinds: ['failed', 'pull_request'] });
    await publish(event('conversation.finished'));
    await publish(event('conversation.running'));
    await publish(event('conversation.stuck'));
    await received(1);
    const goal = { repository: 'octo/app', number: 17, reason: 'The pull request is green.' };
    await publish(event('pull_request.reached', goal));

    const bodies = (await received(2)).map(({ message }) => message['body']);
    expect(bodies).toEqual(['Failed', 'octo/app #17: The pull request is green.']);
  });

  it('about the same conversation takes the place of one that has not arrived', async () => {
    app.clock.stop();
    service.injectFault({ kind: 'status', status: 503 }, { times: 1 });
    await subscribe();
    await publish(event('conversation.waiting_for_confirmation'));
    await received(1);
    await publish(event('conversation.finished'));

    expect((await received(2)).map(({ message }) => message['kind'])).toEqual(['waiting', 'finished']);
    await until(async () => (await rows('push_messages')) === 0);
  });

  it('is tried again when its service is busy, and not for longer than it is news', async () => {
    app.clock.stop();
    service.injectFault({ kind: 'status', status: 503 });
    await subscribe();
    await publish(event('conversation.finished'));
    const pauses = [5, 30, 120, 600, 1_800, 7_200];
    for (const [index, pause] of pauses.entries()) {
      await until(async () => service.requests.length === index + 1 && !(await isLeased()));
      // Pauses are a little longer at random.
      app.clock.advance(pause * 1_100);
      await look();
    }
    await until(async () => (await rows('push_messages')) === 0);

    expect(service.requests).toHaveLength(pauses.length + 1);
    expect(await rows('push_subscriptions')).toBe(1);
  });

  it('is not sent while its user is disabled, whose browsers are asked again afterwards', async () => {
    app.clock.stop();
    service.injectFault({ kind: 'status', status: 503 }, { times: 1 });
    await subscribe();
    await publish(event('conversation.finished'));
    await until(async () => service.requests.length === 1 && !(await isLeased()));
    await call('post', app.admin, `/api/v1/users/${user.id}/disable`).expect(200);
    app.clock.advance(6_000);
    await look();
    await until(async () => (await rows('push_messages')) === 0);

    expect(service.requests).toHaveLength(1);
    expect(await rows('push_subscriptions')).toBe(1);
  });

  it('that a service refuses is not repeated', async () => {
    service.injectFault({ kind: 'status', status: 413 });
    await subscribe();
    await publish(event('conversation.finished'));
    await until(async () => service.requests.length > 0 && (await rows('push_messages')) === 0);

    expect(service.requests).toHaveLength(1);
    expect(await rows('push_subscriptions')).toBe(1);
  });
});

describe('a subscription', () => {
  const point = (p256dh: string): object => ({ keys: { p256dh, auth: 'A'.repeat(22) } });
  it.each([404, 410])('whose service answers %i goes, with what waits for it', async (status) => {
    service.injectFault({ kind: 'status', status });
    await subscribe();
    await publish(event('conversation.finished'));
    await until(async () => (await rows('push_subscriptions')) === 0);

    expect(await rows('push_messages')).toBe(0);
    const { body } = await call('get', app.admin, '/api/v1/audit?action=push_subscription.delete');
    expect(body.items[0]).toMatchObject({ actor: { kind: 'service' } });
  });

  it('ends when it is asked to, and at once', async () => {
    await subscribe();
    await call('delete').send({ endpoint: browser.endpoint }).expect(204);
    await call('delete').send({ endpoint: browser.endpoint }).expect(204);

    expect((await call('get').expect(200)).body).toEqual([]);
  });

  it('of a browser belongs to the user who signed in there last', async () => {
    await subscribe();
    const other = await app.createUser();
    await subscribe(browser, { kinds: ['failed', 'failed'] }, other);

    expect((await call('get').expect(200)).body).toEqual([]);
    expect((await call('get', other).expect(200)).body).toEqual([
      expect.objectContaining({ endpoint: browser.endpoint, kinds: ['failed'] }),
    ]);
    const { body } = await call('get', app.admin, `/api/v1/audit?action=push_subscription.delete`);
    expect(body.items[0]).toMatchObject({ actor: { user_id: other.id }, owner_user_id: user.id });
  });

  it('of a browser in which two users sign in at once belongs to one of them', async () => {
    const other = await app.createUser();
    const both = await app.dataSource.transaction(async (manager) => {
      await manager.query('LOCK TABLE push_subscriptions IN SHARE MODE');
      const asked = [user, other].map(async (who) => call('post', who).send(browser.subscription));
      await untilBlocked(app.dataSource, 2);
      return { asked };
    });
    const answers = await Promise.all(both.asked);

    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(await rows('push_subscriptions')).toBe(1);
  });

  it('of another user is neither shown nor removed, and ends with that user', async () => {
    await subscribe();
    const other = await app.createUser();
    await call('delete', other).send({ endpoint: browser.endpoint }).expect(204);

    expect((await call('get', other).expect(200)).body).toEqual([]);
    expect((await call('get').expect(200)).body).toHaveLength(1);
    await call('delete', app.admin, `/api/v1/users/${user.id}`).expect(204);
    expect(await rows('push_subscriptions')).toBe(0);
  });

  it('is stored without anything that could be sent by', async () => {
    await subscribe();
    const stored = JSON.stringify(await app.dataSource.query('SELECT * FROM push_subscriptions'));

    expect(stored).not.toContain(browser.endpoint);
    const [state] = await app.dataSource.query('SELECT push_keys FROM service_state');
    expect(state.push_keys).not.toContain('privateKey');
  });

  it.each([
    ['of a private server', { endpoint: 'https://10.0.0.1/push' }, 'endpoint'],
    ['of another server than may be', { endpoint: 'https://push.example.com/push' }, 'endpoint'],
    ['with a password', { endpoint: 'https://a:b@push.example.com/' }, 'endpoint'],
    ['with a point of another form', point('A'.repeat(87)), 'keys.p256dh'],
    ['with a point off the curve', point(`BP${'_'.repeat(85)}`), 'keys.p256dh'],
    ['without a point', point('AAAA'), 'keys.p256dh'],
    ['with what is not known', { kind: ['failed'] }, 'kind'],
  ])('%s is refused', async (_, members, loc) => {
    const { body } = await call('post')
      .send({ ...browser.subscription, ...members })
      .expect(422);

    expect(body.detail[0].loc.join('.')).toBe(`body.${loc}`);
  });
});

it('keeps the newest twenty of a user, and fifty messages of each', async () => {
  for (let index = 0; index < 21; index += 1) {
    await subscribe(newBrowser());
  }
  expect(await rows('push_subscriptions')).toBe(20);
  await app.dataSource.query(
    'DELETE FROM push_subscriptions WHERE id <> (SELECT id FROM push_subscriptions LIMIT 1)',
  );
  expect(await rows('push_subscriptions')).toBe(1);
  service.injectFault({ kind: 'hang' });
  for (let index = 0; index < 51; index += 1) {
    await publish(event('conversation.finished', { conversation_id: randomUUID() }));
  }

  expect(await rows('push_messages')).toBe(50);
  service.hangUp();
});
