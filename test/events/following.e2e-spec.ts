import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import { LogLeaseRepository } from '../../src/v1/events/log-sync/log-lease.repository.js';
import { FollowedConversationRepository } from '../../src/v1/events/followed-conversation.repository.js';
import { ConversationUpdates } from '../../src/v1/events/store/event-store.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { requireDocumentedEvents } from '../support/stored-events.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const service = useTestApp({}, {}, ({ dataSource }) => requireDocumentedEvents(dataSource));
let agent: FakeConversationServer & { address: string };
let sandbox: string;
let id: string;

beforeEach(async () => {
  agent = await FakeConversationServer.start();
  sandbox = await insertRunningSandbox(service, service.user.id, agent);
  id = randomUUID();
  agent.open(id);
});

afterEach(async () => {
  await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
  await agent.close();
});

async function get(path: string): Promise<unknown> {
  const response = await fetch(`${service.url}/api/v1/conversation/${id}/events${path}`, {
    headers: service.user.headers,
  });
  return await response.json();
}

function idsIn(page: unknown): unknown[] {
  return jsonList(page, 'items').map((event) => jsonAt(event, 'id'));
}

async function ids(): Promise<unknown[]> {
  return idsIn(await get('/search'));
}

async function untilCount(count: number): Promise<void> {
  await until(async () => (await get('/count')) === count);
}

async function row(): Promise<Record<string, unknown>> {
  const [found] = await service.dataSource.query<Record<string, unknown>[]>(
    'SELECT * FROM followed_conversations WHERE id = $1',
    [id],
  );
  return found ?? {};
}

describe.each([true, false])('following a log, with linked frames: %s', (linksFrames) => {
  beforeEach(() => {
    agent.linksFrames = linksFrames;
  });

  it('stores the events that are there in order, and then new ones', async () => {
    const first = Array.from({ length: 250 }, () => agent.append(id));
    await openLog(service, service.user.id, sandbox, id);
    await untilCount(250);
    await until(() => agent.watchers === 1);
    const later = Array.from({ length: 30 }, () => agent.append(id));
    await untilCount(280);

    const one = await get('/search');
    const two = await get(`/search?page_id=${jsonText(one, 'next_page_id')}`);
    const last = await get('/search?sort_order=TIMESTAMP_DESC&limit=30');
    expect(idsIn(one)).toEqual(first.slice(0, 100));
    expect(idsIn(two)).toEqual(first.slice(100, 200));
    expect(idsIn(last)).toEqual(later.toReversed());
    expect(await row()).toMatchObject({ event_count: 280, last_event_id: later.at(-1) });
  });

  it('reads a truncated log from its start, and stores only what is new', async () => {
    const before = Array.from({ length: 120 }, () => agent.append(id));
    await openLog(service, service.user.id, sandbox, id);
    await untilCount(120);
    agent.conversations.get(id)?.events.splice(110);
    const after = Array.from({ length: 5 }, () => agent.append(id));
    await untilCount(125);
    agent.reads.length = 0;
    const later = agent.append(id);
    await untilCount(126);

    expect([
      ...idsIn(await get('/search')),
      ...idsIn(await get('/search?sort_order=TIMESTAMP_DESC&limit=26')).toReversed(),
    ]).toEqual([...before, ...after, later]);
    // The position is known again.
    expect(agent.reads.every((read) => read.includes('page_id='))).toBe(true);
  });
});

describe('following a log', () => {
  it('tries again after failures, and works without the socket', async () => {
    agent.faults.push(500, 'reset', 503, 404);
    const first = agent.append(id);
    await openLog(service, service.user.id, sandbox, id);
    await untilCount(1);
    agent.dropSockets();
    const second = agent.append(id);
    await untilCount(2);
    agent.socketsWork = false;
    agent.dropSockets();
    const third = agent.append(id);
    await untilCount(3);

    expect(await ids()).toEqual([first, second, third]);
  });

  it('shows no state before the events that led to it', async () => {
    agent.socketsWork = false;
    let last = '';
    agent.beforeState = () => {
      agent.beforeState = () => undefined;
      last = agent.append(id);
      agent.open(id, { execution_status: 'finished' }, agent.conversations.get(id)?.events);
    };
    await openLog(service, service.user.id, sandbox, id);
    await until(async () => (await row())['execution_status'] === 'finished');

    expect(await ids()).toEqual([last]);
  });

  it('goes on from the last stored event', async () => {
    agent.linksFrames = false;
    const known = agent.append(id);
    await openLog(service, service.user.id, sandbox, id);
    await untilCount(1);
    agent.reads.length = 0;
    const next = agent.append(id);
    await untilCount(2);

    expect(agent.reads.every((read) => read.includes(known) || read.includes(next))).toBe(true);
  });

  it('stores unknown kinds, and replaces characters that PostgreSQL refuses', async () => {
    agent.append(id, {
      kind: 'EventOfTheFuture',
      id: 'nul\0',
      text: 'a\0b\uD800c',
      'key\0': [{ deep: '\0' }],
    });
    agent.append(id, { timestamp: '2026-01-31 12:00:00.123456+02:00' });
    agent.append(id, { timestamp: '+275760-01-01T00:00:00Z' });
    await openLog(service, service.user.id, sandbox, id);
    await untilCount(3);
    const last = agent.append(id);
    await untilCount(4);

    const [strange] = jsonList(await get('/search?kind__eq=EventOfTheFuture'), 'items');
    expect(strange).toMatchObject({
      kind: 'EventOfTheFuture',
      id: 'nul\u{FFFD}',
      text: 'a\u{FFFD}b\u{FFFD}c',
      'key\u{FFFD}': [{ deep: '\u{FFFD}' }],
    });
    expect(await ids()).toHaveLength(4);
    expect((await ids()).at(-1)).toBe(last);
    expect(
      await get('/count?timestamp__gte=2026-01-31T10:00:00.123456&timestamp__lt=2026-01-31T10:00:00.123457'),
    ).toBe(1);
  });

  it('learns status, metrics and title from the log and from the conversation itself', async () => {
    agent.open(id, { title: 'From the agent server' });
    agent.append(id, { kind: 'ConversationStateUpdateEvent', key: 'execution_status', value: 'running' });
    agent.append(id, {
      kind: 'ConversationStateUpdateEvent',
      key: 'stats',
      value: { usage_to_metrics: { agent: { model_name: 'm', accumulated_cost: 0.5 } } },
    });
    const states: unknown[] = [];
    const stored: unknown[] = [];
    service.app.get(ConversationUpdates, { strict: false }).listen((conversation, { events, state }) => {
      if (conversation === id) {
        states.push(state);
        stored.push(...events.map((event) => event.id));
      }
    });
    const info = agent.conversations.get(id)?.info ?? {};
    info['execution_status'] = 'running';
    await openLog(service, service.user.id, sandbox, id);
    const told = { executionStatus: 'running', title: 'From the agent server' };
    await until(() => Object.assign({}, ...states).title === told.title);

    expect(await row()).toMatchObject({
      execution_status: told.executionStatus,
      metrics: { model_name: 'm', accumulated_cost: 0.5 },
      title: told.title,
    });
    expect(Object.assign({}, ...states)).toMatchObject(told);
    expect(stored).toEqual(await ids());

    // A server that does not write its status into the log.
    info['execution_status'] = 'finished';
    agent.append(id);
    agent.tellState(id);
    await until(async () => (await row())['execution_status'] === 'finished');
  });

  it('follows the agent server to a new address', async () => {
    await openLog(service, service.user.id, sandbox, id);
    const first = agent.append(id);
    await untilCount(1);
    const moved = await FakeConversationServer.start();
    moved.conversations.set(id, agent.conversations.get(id) ?? { info: {}, events: [] });
    await service.dataSource.query(
      'UPDATE sandboxes SET address = $2, generation = generation + 1 WHERE id = $1',
      [sandbox, moved.address],
    );
    moved.key = agent.key;
    await agent.close();
    agent = moved;
    const second = agent.append(id);
    await untilCount(2);

    expect(await ids()).toEqual([first, second]);
  });

  it('stops when the conversation is removed, and when the sandbox is stopped', async () => {
    const other = randomUUID();
    agent.open(other);
    await openLog(service, service.user.id, sandbox, id);
    await openLog(service, service.user.id, sandbox, other);
    await until(() => agent.watchers === 2);
    await service.dataSource.transaction((manager) =>
      service.app.get(FollowedConversationRepository, { strict: false }).remove(manager, other),
    );
    agent.append(other);
    await until(() => agent.watchers === 1);
    await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED' WHERE id = $1`, [sandbox]);
    await until(() => agent.watchers === 0);
    await until(async () => (await row())['follower'] === null);

    expect(await row()).toMatchObject({ id, follower: null });
  });

  it('reads the rest of a log before its sandbox is stopped', async () => {
    await openLog(service, service.user.id, sandbox, id);
    await until(() => agent.watchers === 1);
    agent.socketsWork = false;
    const last = agent.append(id);
    await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSING' WHERE id = $1`, [sandbox]);
    await service.app.get(SandboxEvents, { strict: false }).emit('stopping', sandbox);

    expect(await ids()).toEqual([last]);
  });
});

describe('following a log over linked frames', () => {
  beforeEach(async () => {
    agent.append(id);
    await openLog(service, service.user.id, sandbox, id);
    await untilCount(1);
    await until(() => agent.watchers === 1);
  });

  it('stores what arrives, once and in order, and reads what is too large for a frame', async () => {
    const before = await ids();
    const first = Array.from({ length: 40 }, () => agent.append(id));
    const large = agent.append(id, { text: 'x'.repeat(100_000) });
    const last = Array.from({ length: 40 }, () => agent.append(id));
    await untilCount(before.length + 81);

    expect(await ids()).toEqual([...before, ...first, large, ...last]);
    expect(agent.reads.some((read) => read.includes('page_id='))).toBe(true);
  });

  it('reads the log where a frame is missing, or claims what is not so', async () => {
    const before = await ids();
    agent.socketsWork = false;
    const missed = agent.append(id);
    agent.socketsWork = true;
    const next = agent.append(id);
    await untilCount(before.length + 2);
    agent.sendFrame(id, () => ({
      after: 'nowhere',
      event: { id: 'x', kind: 'K', timestamp: '2026-01-01T00:00:00' },
    }));
    agent.sendFrame(id, () => ({ after: next, event: 'none' }));
    agent.sendFrame(id, () => ({ after: 7, event: {} }));
    const last = agent.append(id);
    await untilCount(before.length + 3);

    expect(await ids()).toEqual([...before, missed, next, last]);
  });
});

describe('conversations of stopped sandboxes', () => {
  it('are not read by what looks for those of running ones, however many there are', async () => {
    const { dataSource, user } = service;
    await dataSource.query(`UPDATE sandboxes SET status = 'PAUSED'`);
    await dataSource.query(
      `INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, last_activity_at)
       SELECT 'many' || n, $1, 'slipway', CASE WHEN n % 20 = 0 THEN 'RUNNING' ELSE 'PAUSED' END, 'docker', 'absent-host', '',
         decode(md5('many' || n), 'hex'), now()
       FROM generate_series(1, 1000) AS n`,
      [user.id],
    );
    await dataSource.query(
      `INSERT INTO followed_conversations (id, user_id, sandbox_id, follower, follower_until)
       SELECT md5('many ' || n)::uuid, $1, 'many' || n / 10, 'x', CASE WHEN n / 10 % 20 = 0 THEN now() + interval '1 hour' END
       FROM generate_series(1, 10000) AS n`,
      [user.id],
    );
    await dataSource.query('ANALYZE sandboxes, followed_conversations');
    const leases = service.app.get(LogLeaseRepository, { strict: false });
    const spy = jest.spyOn(dataSource, 'query');
    const claimed = await leases.claim();
    const unfollowed = await leases.countUnfollowed();
    const running = await leases.countRunning();
    const sent = spy.mock.calls.map(([sql, values]) => ({ sql, values }));
    spy.mockRestore();

    expect([claimed, unfollowed, running]).toEqual([[], 0, new Map([['unknown', 491]])]);
    const reads = [];
    for (const { sql, values } of sent.filter((each) => /followed_conversations/.test(each.sql))) {
      const plan = JSON.stringify(await dataSource.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, values));
      const filtered = [...plan.matchAll(/"Rows Removed by Filter":(\d+)/g)].map(([, rows]) => Number(rows));
      const rows = [...plan.matchAll(/"Actual Rows":([\d.]+),"Actual Loops":(\d+)/g)].map(
        ([, read, loops]) => Number(read) * Number(loops),
      );
      reads.push(Math.max(...rows, ...filtered));
    }
    expect(reads.length).toBeGreaterThanOrEqual(3);
    // At most all 1,000 sandboxes, and the 500 conversations of those that run: not 10,000.
    expect(Math.max(...reads)).toBeLessThan(1_200);
    await dataSource.query(`DELETE FROM followed_conversations WHERE sandbox_id LIKE 'many%'`);
    await dataSource.query(`DELETE FROM sandboxes WHERE host_id = 'absent-host'`);
  });
});
