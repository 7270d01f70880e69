import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { EventRepository } from '../../src/v1/events/store/event.repository.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { UncountedEventsWorker } from '../../src/v1/events/store/uncounted-events.worker.js';
import { toStorable } from '../../src/v1/events/store/storable-event.js';
import { FollowedConversation } from '../../src/v1/events/followed-conversation.entity.js';
import { type LogProgress, NO_ROOM } from '../../src/v1/events/followed-conversation.repository.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { requireDocumentedEvents } from '../support/stored-events.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

const MOST = 300_000;
const LIMITS = { CONVERSATION_EVENT_BYTES: String(MOST), USER_EVENT_BYTES: String(2 * MOST) };

const app = useTestApp(LIMITS, {}, ({ dataSource }) => requireDocumentedEvents(dataSource));
let sandbox: string;
let id: string;

beforeAll(async () => {
  // Nothing listens there, so that only the test stores events.
  sandbox = await insertRunningSandbox(app, app.user.id, { address: 'http://127.0.0.1:1', key: 'k' });
});

beforeEach(async () => {
  id = await openLog(app, app.user.id, sandbox);
  await store('ab', null);
});

/** An event for each letter. */
function eventsOf(letters: string): AgentEvent[] {
  return letters.split('').map((letter) => ({
    id: letter,
    kind: 'PauseEvent',
    source: 'user',
    timestamp: '2026-11-22T12:00:00.000000',
  }));
}

/** Where a log is believed to end. */
function end(eventCount: number, lastEventId: string): LogProgress {
  return { eventCount, lastEventId, bytes: 1, isFull: false, since: new Date('2026-01-01T00:00:00Z') };
}

async function store(letters: string, after: LogProgress | null): Promise<LogProgress | null> {
  return await app.app.get(EventStore).store(id, eventsOf(letters), after);
}

async function stored(): Promise<{ letters: string; log: Pick<LogProgress, 'eventCount' | 'lastEventId'> }> {
  const rows = await app.dataSource.query<{ seq: number; event_id: string }[]>(
    'SELECT seq, event_id FROM conversation_events WHERE conversation_id = $1 ORDER BY seq',
    [id],
  );
  expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_row, index) => index + 1));
  const [log] = await app.dataSource.query<{ event_count: number; last_event_id: string }[]>(
    'SELECT event_count, last_event_id FROM followed_conversations WHERE id = $1',
    [id],
  );
  return {
    letters: rows.map(({ event_id: letter }) => letter).join(''),
    log: { eventCount: log?.event_count ?? 0, lastEventId: log?.last_event_id ?? null },
  };
}

describe('events that go on after where their log is believed to end', () => {
  it.each([
    ['it ends there', 'cd', end(2, 'b'), 'abcd'],
    ['it has grown meanwhile', 'bcd', end(1, 'a'), 'abcd'],
    ['it ends with another event', 'c', end(2, 'x'), 'abc'],
    ['some of them are known', 'abc', end(2, 'b'), 'abc'],
    ['all of them are known', 'ab', end(2, 'b'), 'ab'],
    ['one comes twice', 'ccd', end(2, 'b'), 'abcd'],
    ['nothing is believed', 'bc', null, 'abc'],
  ])('are stored once and in order when %s', async (_when, letters, after, expected) => {
    const log = { eventCount: expected.length, lastEventId: letters.at(-1) };
    expect(await store(letters, after)).toMatchObject(log);

    expect(await stored()).toEqual({ letters: expected, log });
  });

  it('tell that what waited was read, also where the run is over in the same events', async () => {
    const row = { id };
    const logs = app.dataSource.getRepository(FollowedConversation);
    const told = ['running', 'finished'].map((value, index) =>
      Object.assign({}, eventsOf('cd')[index], {
        kind: 'ConversationStateUpdateEvent',
        key: 'execution_status',
        value,
      }),
    );
    await logs.update(row, { executionStatus: 'finished', unreadMessages: 99, unreadBytes: 7 });
    await app.app.get(EventStore).store(id, told, end(2, 'b'));

    expect(await logs.findOneBy(row)).toMatchObject({
      executionStatus: 'finished',
      unreadMessages: 0,
      unreadBytes: 0,
    });
  });

  it('are not stored when the conversation was removed', async () => {
    await app.dataSource.query('DELETE FROM followed_conversations WHERE id = $1', [id]);

    expect(await store('c', end(2, 'b'))).toBeNull();
  });
});

describe('what comes next in many logs', () => {
  const after = end(2, 'b');

  /** Appends to each log at once; returns which ones were stored. */
  async function appendMany(
    logs: { conversationId: string; letters: string; after: LogProgress }[],
  ): Promise<string[]> {
    const next = logs.map(({ letters, ...log }) => ({
      ...log,
      events: eventsOf(letters).map((event) => toStorable(event, new Date())),
    }));
    const appended = await app.app.get(EventRepository).appendMany(next);
    return logs.filter(({ conversationId }) => appended.has(conversationId)).map(({ letters }) => letters);
  }

  async function anotherLog(): Promise<string> {
    id = await openLog(app, app.user.id, sandbox);
    await store('ab', null);
    return id;
  }

  it('is stored for those where it is so, and for no other one', async () => {
    const first = id;
    const second = await anotherLog();
    const stale = await anotherLog();
    const other = await anotherLog();
    const knowing = await anotherLog();
    const removed = await anotherLog();
    await app.dataSource.query('DELETE FROM followed_conversations WHERE id = $1', [removed]);

    const appended = await appendMany([
      { conversationId: first, letters: 'cde', after },
      { conversationId: second, letters: 'c', after },
      { conversationId: stale, letters: 'f', after: end(1, 'b') },
      { conversationId: other, letters: 'g', after: end(2, 'x') },
      { conversationId: knowing, letters: 'ha', after },
      { conversationId: removed, letters: 'i', after },
    ]);

    expect(appended).toEqual(['cde', 'c']);
    const expected = [
      [first, 'abcde'],
      [second, 'abc'],
      [stale, 'ab'],
      [other, 'ab'],
      [knowing, 'ab'],
    ] as const;
    for (const [conversationId, letters] of expected) {
      id = conversationId;
      expect(await stored()).toEqual({
        letters,
        log: { eventCount: letters.length, lastEventId: letters.at(-1) },
      });
    }
  });

  it('waits for nobody who has a log locked', async () => {
    const locked = id;
    const free = await anotherLog();
    await app.dataSource.transaction(async (manager) => {
      await manager.query('SELECT 1 FROM followed_conversations WHERE id = $1 FOR UPDATE', [locked]);

      expect(
        await appendMany([
          { conversationId: locked, letters: 'c', after },
          { conversationId: free, letters: 'cd', after },
        ]),
      ).toEqual(['cd']);
    });
  });

  it('is stored all the same when it cannot be stored together with others', async () => {
    const first = id;
    const second = await anotherLog();
    const events = app.app.get(EventStore);
    const long = 'l'.repeat(201);
    const progress = await Promise.all([
      events.store(first, eventsOf('cc'), after),
      events.store(
        second,
        eventsOf('c').map((event) => ({ ...event, id: long })),
        after,
      ),
    ]);

    expect(progress).toMatchObject([
      { eventCount: 3, lastEventId: 'c' },
      { eventCount: 3, lastEventId: long },
    ]);
    expect((await stored()).letters).toBe(`ab${long}`);
    id = first;
    expect((await stored()).letters).toBe('abc');
  });

  it('is stored once when several processes store it at the same time', async () => {
    const events = app.app.get(EventStore);
    const progress = await Promise.all([
      events.store(id, eventsOf('cd'), after),
      events.store(id, eventsOf('cd'), after),
      events.store(id, eventsOf('bcde'), null),
    ]);

    expect((await stored()).letters).toBe('abcde');
    expect(progress.at(-1)).toMatchObject({ eventCount: 5, lastEventId: 'e' });
  });
});

describe('what a log may hold', () => {
  interface Size {
    bytes: number;
    stored: number;
    codes: string[];
  }

  function large(letter: string, bytes = 40_000): AgentEvent {
    return Object.assign({}, ...eventsOf(letter), { extra: 'x'.repeat(bytes) }) as AgentEvent;
  }

  async function fill(): Promise<void> {
    let after: LogProgress | null = null;
    for (const letter of 'cdefghijklm') {
      after = await app.app.get(EventStore).store(id, [large(letter)], after);
    }
  }

  async function size(): Promise<Size> {
    const [row] = await app.dataSource.query<[Size]>(
      `SELECT f.event_bytes::int AS bytes, sum(octet_length(e.body::text))::int AS stored,
         coalesce(array_agg(e.body->>'code') FILTER (WHERE e.kind = 'ConversationErrorEvent'), '{}') AS codes
       FROM followed_conversations f JOIN conversation_events e ON e.conversation_id = f.id WHERE f.id = $1 GROUP BY f.id`,
      [id],
    );
    return row;
  }

  it('is counted afterwards where it was stored before that, once, and besides what comes meanwhile', async () => {
    await app.dataSource.query(
      'UPDATE followed_conversations SET event_bytes = 0, uncounted_events = event_count WHERE id = $1',
      [id],
    );
    await app.app.get(EventStore).store(id, [large('c', 1_000)], null);
    await app.app.get(UncountedEventsWorker).now();
    await app.app.get(UncountedEventsWorker).now();

    const { bytes, stored } = await size();
    expect(bytes).toBe(stored);
    expect(bytes).toBeGreaterThan(1_000);
  });

  it('is counted as it is stored, and ends with a notice, while its state goes on', async () => {
    await fill();
    const full = await size();
    expect(full.bytes).toBe(full.stored);
    expect(full.bytes).toBeLessThanOrEqual(MOST + NO_ROOM);
    expect(full.codes).toEqual(['StorageFull']);

    const over = {
      ...large('n'),
      kind: 'ConversationStateUpdateEvent',
      key: 'execution_status',
      value: 'finished',
    };
    await app.app.get(EventStore).store(id, [over as AgentEvent], null);
    await store('opqr', null);
    expect(await size()).toEqual(full);
    expect(
      await app.dataSource.query('SELECT execution_status AS s FROM followed_conversations WHERE id = $1', [
        id,
      ]),
    ).toEqual([{ s: 'finished' }]);
  });

  it('ends with the events of all conversations of the user, and goes on when some are deleted', async () => {
    await app.dataSource.query('DELETE FROM followed_conversations');
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      id = await openLog(app, app.user.id, sandbox);
      ids.push(id);
      await fill();
    }
    const last = await size();
    expect(last).toMatchObject({ codes: ['StorageFull'] });
    expect(last.bytes).toBeLessThan(100_000);

    const start = () => request(app.url).post('/api/v1/app-conversations').set(app.user.headers).send({});
    const { body } = await start().expect(507);
    expect(body).toMatchObject({ code: 'storage_full', detail: expect.stringContaining('USER_EVENT_BYTES') });

    await app.dataSource.query('DELETE FROM followed_conversations WHERE id = $1', [ids[0]]);
    await store('z', null);
    expect((await size()).bytes).toBeGreaterThan(last.bytes);
    await start().expect(200);
  });
});

describe('the cost that a sandbox reports', () => {
  it.each([
    [[1, 2.5], 2.5],
    [[2, 1], 2],
    [[-5], 0],
    [[2, -5], 2],
    [[3, 1e308], 3],
    [[1, 1_000_000], 1_000_000],
    [[1, 1_000_000.01], 1],
    [[1, 'a lot'], 1],
  ])('%j counts as %d', async (costs, expected) => {
    for (const [index, accumulated_cost] of costs.entries()) {
      const value = { usage_to_metrics: { agent: { model_name: `m${index}`, accumulated_cost } } };
      const event = {
        ...eventsOf(String(index))[0],
        kind: 'ConversationStateUpdateEvent',
        key: 'stats',
        value,
      };
      await app.app.get(EventStore).store(id, [event as AgentEvent], null);
    }
    const [row] = await app.dataSource.query('SELECT metrics FROM followed_conversations WHERE id = $1', [
      id,
    ]);
    expect(row.metrics).toMatchObject({ model_name: `m${costs.length - 1}`, accumulated_cost: expected });
  });
});

describe('an event that webhook endpoints are told of', () => {
  it('is stored in full although one of them is removed meanwhile', async () => {
    const { body: endpoint } = await request(app.url)
      .post('/api/v1/webhook-endpoints')
      .set(app.user.headers)
      .send({ url: 'https://ci.example.com/hook' })
      .expect(201);
    const event = {
      ...eventsOf('c')[0],
      kind: 'ConversationStateUpdateEvent',
      key: 'execution_status',
      value: 'finished',
    } as AgentEvent;
    const storing = await app.dataSource.transaction(async (manager) => {
      await manager.query('DELETE FROM webhook_endpoints WHERE id = $1', [endpoint.id]);
      const stored = app.app.get(EventStore).store(id, [event], end(2, 'b'));
      await untilBlocked(app.dataSource);
      return { stored };
    });
    await storing.stored;

    const [row] = await app.dataSource.query<{ body: unknown; execution_status: string }[]>(
      `SELECT e.body, f.execution_status FROM conversation_events e JOIN followed_conversations f ON f.id = e.conversation_id
       WHERE f.id = $1 AND e.seq = 3`,
      [id],
    );
    expect(row).toEqual({ body: event, execution_status: 'finished' });
  });
});
