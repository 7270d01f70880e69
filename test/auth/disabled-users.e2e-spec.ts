import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { WebSocket } from 'ws';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import { AutomationRepository } from '../../src/automations/definitions/automation.repository.js';
import { ScheduleWorker } from '../../src/automations/definitions/schedule.worker.js';
import { DEVICE_SCOPES } from '../../src/common/scopes.js';
import { LeasedRows } from '@slipway/database/leased-rows.js';
import { OwnToolServer } from '../../src/v1/app-conversations/agent-request/own-tool-server.js';
import { FollowedPullRequestRepository } from '../../src/v1/app-conversations/followed/followed-pull-request.repository.js';
import {
  messagesFor,
  PendingMessageRepository,
} from '../../src/v1/app-conversations/pending/pending-message.repository.js';
import { AuditClient } from '../support/audit-client.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { EventSource } from '../support/event-source.js';
import { RawServer } from '../support/raw-server.js';
import { sessionOf } from '../support/sign-in-browser.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

type Headers = Record<string, string>;

const SESSION_KEY = 'key-of-the-sandbox';
const ME = '/api/v1/users/me';
const HOUR_MS = 3_600_000;

/** What replicas remember of a key or a session they would then remember for ever, unless they are told. */
function stopClocks(...apps: TestApp[]): void {
  apps.forEach(({ clock }) => clock.stop());
}

describe('a user who is disabled', () => {
  const app = useTestApp();
  const rows = new ConversationRows(app);
  let replica: TestApp;
  let agent: RawServer;
  let user: TestUser;
  let sandboxId: string;
  let conversation: { id: string; hex: string };

  beforeAll(async () => {
    replica = await createTestApp({}, app.databaseUrl);
    stopClocks(app, replica);
    agent = await RawServer.start(
      (_incoming, response) => void response.end('{}'),
      (socket) => socket.send('open'),
    );
  });

  afterAll(async () => {
    await replica.close();
    await agent.close();
  });

  beforeEach(async () => {
    user = await app.createUser();
    sandboxId = (await rows.sandbox(user.id, { key: SESSION_KEY, address: agent.origin })).id;
    conversation = await rows.conversation(user.id, { sandboxId }, FOLLOWED_ELSEWHERE);
  });

  afterEach(async () => {
    await app.dataSource.query('DELETE FROM sandboxes');
  });

  const change = (what: string, id = user.id): request.Test =>
    app.as(app.admin).post(`/api/v1/users/${id}/${what}`);
  const statuses = async (headers: Headers, path = ME): Promise<number[]> =>
    Promise.all([app, replica].map(async ({ url }) => (await request(url).get(path).set(headers)).status));
  const untilRefused = async (headers: Headers): Promise<void> =>
    until(async () => (await statuses(headers)).every((status) => status === 401));
  const signIn = (key: string): Promise<Headers> => sessionOf(app.url, key);
  const stream = (headers: Headers): Promise<EventSource> =>
    EventSource.connect(`${replica.url}/api/v1/conversation/${conversation.hex}/events/stream`, headers);
  const agentServer = (): string => `${replica.url}/api/v1/sandboxes/${sandboxId}/agent-server`;
  const socket = async (): Promise<WebSocket> => {
    const opened = new WebSocket(
      `${agentServer().replace('http', 'ws')}/sockets?session_api_key=${SESSION_KEY}`,
    );
    await once(opened, 'message');
    return opened;
  };
  const sandboxStatus = async (): Promise<unknown> =>
    (
      await app.dataSource.query<unknown[]>(
        'SELECT status, stopped_generation FROM sandboxes WHERE id = $1',
        [sandboxId],
      )
    )[0];

  it('is out at once on every replica: keys, sessions, devices, streams and WebSockets', async () => {
    const device = await app.app.get(ApiKeysService).issue({
      userId: user.id,
      name: 'laptop',
      expiresAt: null,
      scopes: [...DEVICE_SCOPES],
      ofDevice: true,
    });
    const session = await signIn(user.key);
    const [byDevice, bySession] = [{ 'X-Session-API-Key': device.key }, session];
    for (const headers of [user.headers, byDevice, bySession]) {
      expect(await statuses(headers)).toEqual([200, 200]);
    }
    const streams = await Promise.all([user.headers, byDevice, bySession].map(stream));
    const other = await EventSource.connect(
      `${replica.url}/api/v1/conversation/${(await rows.conversation(app.user.id)).hex}/events/stream`,
      app.user.headers,
    );
    const opened = await socket();
    const closed = once(opened, 'close');

    const { body } = await change('disable?sandboxes=keep').expect(200);
    expect(body).toMatchObject({ id: user.id, disabled_at: expect.any(String) });
    await Promise.all(streams.map((each) => each.untilEnded()));
    await closed;
    await Promise.all([user.headers, byDevice, bySession].map(untilRefused));
    expect(other.ended).toBe(false);
    other.close();

    // What is left to them: the key of a sandbox that was kept.
    const key = { 'X-Session-API-Key': SESSION_KEY };
    expect((await fetch(`${agentServer()}/alive`, { headers: key })).status).toBe(401);
    const again = new WebSocket(
      `${agentServer().replace('http', 'ws')}/sockets?session_api_key=${SESSION_KEY}`,
    );
    expect(String(await once(again, 'error'))).toContain('401');
    const secrets = `${replica.url}/api/v1/sandboxes/${sandboxId}/settings/secrets`;
    expect((await fetch(secrets, { headers: key })).status).toBe(401);
    await app.as().post('/auth/key', { key: user.key }).expect(401);

    expect((await change('enable').expect(200)).body).toMatchObject({ disabled_at: null });
    await until(async () => (await statuses(user.headers)).every((status) => status === 200));
    expect(await statuses(byDevice)).toEqual([401, 401]);
    expect(await statuses(bySession)).toEqual([401, 401]);
    expect((await fetch(secrets, { headers: key })).status).toBe(200);
    const actions = (await new AuditClient(app).find({ owner_user_id: user.id })).map(({ action }) => action);
    expect(actions).toEqual(
      expect.arrayContaining(['user.disable', 'user.enable', 'session.end', 'api_key.revoke']),
    );
  });

  it.each([
    ['', { status: 'PAUSING', stopped_generation: null }],
    ['?sandboxes=pause', { status: 'PAUSING', stopped_generation: null }],
    ['?sandboxes=stop', { status: 'PAUSING', stopped_generation: 1 }],
    ['?sandboxes=keep', { status: 'RUNNING', stopped_generation: null }],
  ])('leaves sandboxes as %j says', async (query, expected) => {
    await change(`disable${query}`).expect(200);

    expect(await sandboxStatus()).toEqual(expected);
  });

  it('is told twice without a difference, and is unknown where there is none', async () => {
    const { body } = await change('disable').expect(200);
    app.clock.advance(1_000);

    expect((await change('disable').expect(200)).body).toEqual(body);
    await change('disable', '3f9b7f0e-8a4b-4d61-9a63-1a2b3c4d5e6f').expect(404);
  });

  it('is not the last administrator, who stays one, enabled and there', async () => {
    const administer = (isAdmin: boolean, id = user.id): request.Test =>
      app.as(app.admin).patch(`/api/v1/users/${id}`, { is_admin: isAdmin });
    await change('disable', app.admin.id).expect(409);
    await administer(false, app.admin.id).expect(409);
    expect((await administer(true).expect(200)).body).toMatchObject({ is_admin: true });
    await until(async () =>
      (await statuses(user.headers, '/api/v1/audit')).every((status) => status === 200),
    );
    // One who is disabled does not count.
    await change('disable').expect(200);
    await change('disable', app.admin.id).expect(409);
    await app.as(app.admin).delete(`/api/v1/users/${app.admin.id}`).expect(409);
    await change('enable').expect(200);
    expect((await administer(false).expect(200)).body).toMatchObject({ is_admin: false });
    await until(async () =>
      (await statuses(user.headers, '/api/v1/audit')).every((status) => status === 403),
    );
  });

  it.each<[string, (id: string) => string]>([
    ['without dashes', (id) => id.replaceAll('-', '')],
    ['in capitals', (id) => id.toUpperCase()],
  ])('is the same one by an id %s, and the last administrator, too', async (_name, spelled) => {
    const last = `/api/v1/users/${spelled(app.admin.id)}`;
    const asAdmin = (method: 'patch' | 'post' | 'delete', path: string): request.Test =>
      app.as(app.admin).ask(method, path);
    await asAdmin('post', `${last}/disable`).expect(409);
    await asAdmin('patch', last).send({ is_admin: false }).expect(409);
    await asAdmin('delete', last).expect(409);
    await asAdmin('delete', `/api/v1/users/${user.id}?hand_over_to=${spelled(user.id)}`).expect(422);

    expect(await statuses(user.headers)).toEqual(expect.arrayContaining([200]));
    await change('disable', spelled(user.id)).expect(200);
    await untilRefused(user.headers);
    await change('enable', spelled(user.id)).expect(200);
  });

  it('is not signed in by what was verified before', async () => {
    const session = await signIn(user.key);
    const { body } = await app.as({ headers: session }).post('/api/v1/api-keys', { name: 'own' }).expect(201);
    await change('disable').expect(200);
    await change('enable').expect(200);

    await untilRefused(session);
    await until(async () =>
      (await statuses({ 'X-Session-API-Key': body.key })).every((status) => status === 200),
    );
  });

  describe('does nothing by itself, until enabled:', () => {
    const whileDisabled = async (look: () => Promise<unknown>): Promise<unknown[]> => {
      await change('disable?sandboxes=keep').expect(200);
      const without = await look();
      await change('enable').expect(200);
      return [without, await look()];
    };

    it('schedules and events of automations', async () => {
      const make = async (trigger: object): Promise<void> => {
        const body = { name: 'nightly', prompt: 'Look.', trigger };
        await app.as(user).post('/api/automation/v1/preset/prompt', body).expect(201);
      };
      await make({ type: 'cron', schedule: '0 * * * *', timezone: 'UTC' });
      await make({ type: 'event', source: 'github', on: 'push' });
      const [events, schedules] = [app.app.get(AutomationRepository), app.app.get(ScheduleWorker)];
      const found = await whileDisabled(async () => (await events.ofSource(user.id, 'github')).length);
      expect(found).toEqual([0, 1]);

      const runs = async (): Promise<number> => {
        await schedules.now();
        const made = 'SELECT id FROM automation_runs WHERE user_id = $1';
        return (await app.dataSource.query<unknown[]>(made, [user.id])).length;
      };
      await change('disable').expect(200);
      app.clock.advance(3 * HOUR_MS);
      expect(await runs()).toBe(0);
      await change('enable').expect(200);
      expect(await runs()).toBe(1);
    });

    it('waiting messages', async () => {
      const messages = app.app.get(PendingMessageRepository);
      await messages.transaction((manager) =>
        messages.add(manager, {
          id: conversation.id,
          userId: user.id,
          conversationId: conversation.id,
          content: [{ type: 'text', text: 'go on' }],
        }),
      );
      const leases = new LeasedRows(app.dataSource, app.clock, messagesFor('a-host-of-nobody'));
      const look = async (): Promise<unknown> =>
        (await leases.take({ limit: 9, share: 9, leaseMs: HOUR_MS, held: [] })).rows;

      expect(await whileDisabled(look)).toMatchObject([[], [{ id: conversation.id, userId: user.id }]]);
    });

    it('followed pull requests', async () => {
      await change('disable').expect(200);
      await app.dataSource.query(
        `INSERT INTO followed_pull_requests (conversation_id, user_id, wishes, state, next_look_at)
         VALUES ($1, $2, '{}', 'watching', now() - interval '1 day')`,
        [conversation.id, user.id],
      );
      const looks = async (): Promise<unknown> => {
        await app.app.get(FollowedPullRequestRepository).claim(HOUR_MS, 10);
        const told = 'SELECT attempt FROM followed_pull_requests WHERE conversation_id = $1';
        return Object((await app.dataSource.query<unknown[]>(told, [conversation.id]))[0]).attempt;
      };

      expect(await looks()).toBe(0);
      await change('enable').expect(200);
      expect(await looks()).toBeGreaterThan(0);
    });

    it('calls of its agents', async () => {
      const start = await rows.startTask(user.id, { appConversationId: conversation.id, status: 'READY' });
      const tools = app.app.get(OwnToolServer);
      const look = async (): Promise<unknown> =>
        (await tools.callerOf(tools.keyOf(start.id)))?.userId ?? null;

      expect(await whileDisabled(look)).toEqual([null, user.id]);
    });
  });

  it.each<[string, () => Promise<unknown>]>([
    [
      'a revoked key',
      async () =>
        app
          .as(user)
          .delete(`/api/v1/api-keys/${user.key.split('_')[1]}`)
          .expect(204),
    ],
    ['a removed user', async () => app.as(app.admin).delete(`/api/v1/users/${user.id}`).expect(204)],
  ])('ends as %s does, on the other replica without a look at the clock', async (_what, end) => {
    const session = await signIn(user.key);
    for (const headers of [user.headers, session]) {
      expect(await statuses(headers)).toEqual([200, 200]);
    }
    await end();
    await untilRefused(user.headers);
    await untilRefused(session);
  });

  it('a session ends on the other replica without a look at the clock', async () => {
    const session = await signIn(user.key);
    expect(await statuses(session)).toEqual([200, 200]);
    await app.as({ headers: session }).post('/auth/logout').expect(204);
    await untilRefused(session);
  });

  it.each([
    {},
    { kind: 'person' },
    { kind: 'service', email: 'no address' },
    { kind: 'service', email: null },
  ])('is not made by %j: people have an address, and an address is one', async (members) => {
    const { body } = await app.as(app.admin).post('/api/v1/users', members).expect(422);

    expect(body.detail).toMatchObject([{ loc: ['body', 'email'] }]);
  });

  it('is a service once more, which needs no address, and keeps the one that it has', async () => {
    const make = async (members: object): Promise<string> =>
      (
        await app
          .as(app.admin)
          .post('/api/v1/users', { kind: 'service', ...members })
          .expect(201)
      ).body.email;
    const made = [await make({}), await make({})];

    expect(made).toEqual(Array(2).fill(expect.stringMatching(/^[0-9a-f-]{36}@service\.invalid$/)));
    expect(made[0]).not.toBe(made[1]);
    expect(await make({ email: 'Robot@example.com' })).toBe('robot@example.com');
  });

  it('may be a service, which has keys, and nobody signs in as one', async () => {
    const { body: made } = await app
      .as(app.admin)
      .post('/api/v1/users', { kind: 'service', name: 'robot' })
      .expect(201);
    expect(made).toMatchObject({ kind: 'service', name: 'robot', is_admin: false, disabled_at: null });
    const { body: issued } = await app
      .as(app.admin)
      .post('/api/v1/api-keys', { name: 'ci', user_id: made.id, scopes: ['read', 'run', 'settings'] })
      .expect(201);
    const headers = { 'X-Session-API-Key': issued.key };
    await app.as({ headers }).get(ME).expect(200);

    const { body, headers: sent } = await app.as().post('/auth/key', { key: issued.key }).expect(403);
    expect(body.detail).toBe('This key is of a service, and nobody signs in as one.');
    expect(sent['set-cookie']).toBeUndefined();
    const { body: device } = await app.as().post('/oauth/device/authorize', {}).expect(200);
    await app
      .as({ headers })
      .post('/oauth/device/verify-authenticated', { user_code: device.user_code })
      .expect(403);
  });
});
