import { afterEach, describe, expect, it } from '@jest/globals';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import {
  EventPartitionRepository,
  EventRetentionWorker,
} from '../../src/v1/events/store/event-partition.repository.js';
import { EventRepository } from '../../src/v1/events/store/event.repository.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { toStorable } from '../../src/v1/events/store/storable-event.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { EventSource } from '../support/event-source.js';
import { openLog } from '../support/followed-logs.js';
import { useTestApp } from '../support/use-test-app.js';

const service = useTestApp();

afterEach(async () => {
  await sql('DELETE FROM followed_conversations');
});

function partitionsThere(): EventPartitionRepository {
  return service.app.get(EventPartitionRepository, { strict: false });
}

async function maintain(): Promise<void> {
  await service.app.get(EventRetentionWorker, { strict: false }).now();
}

async function sql<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
  return await service.dataSource.query<Row[]>(text, values);
}

/** Names of the partitions without what they have in common. */
async function partitions(): Promise<string[]> {
  const rows = await sql<{ name: string }>(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'conversation_events'::regclass ORDER BY 1`,
  );
  return rows.map(({ name }) => name.replace('conversation_events_', ''));
}

/** The partitions of the months from so many months after this one until the last one that is created now. */
async function coming(later: number): Promise<string[]> {
  const rows = await sql<{ month: string }>(
    `SELECT to_char(month, 'YYYY_MM') AS month
     FROM generate_series(date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => $1),
       (now() + interval '75 days') AT TIME ZONE 'UTC', interval '1 month') AS month`,
    [later],
  );
  return rows.map(({ month }) => month);
}

/** Leaves the default partition. */
async function dropPartitions(): Promise<void> {
  for (const name of await partitions()) {
    if (name !== 'default') {
      await sql(`DROP TABLE conversation_events_${name}`);
    }
  }
}

/** Events of one day of January 2020, and of today after them, are a log that was opened then. */
async function logWithPast(owner: TestUser = service.user): Promise<string> {
  await sql(`CREATE TABLE conversation_events_2020_01 (LIKE conversation_events INCLUDING DEFAULTS)`);
  await sql(`ALTER TABLE conversation_events_2020_01 ADD PRIMARY KEY (conversation_id, seq)`);
  await sql(`CREATE UNIQUE INDEX ON conversation_events_2020_01 (conversation_id, event_id)`);
  await sql(`ALTER TABLE conversation_events ATTACH PARTITION conversation_events_2020_01
    FOR VALUES FROM ('2020-01-01 00:00:00+00') TO ('2020-02-01 00:00:00+00')`);
  const id = await openLog(service, owner.id, 'a-sandbox-that-is-gone');
  await sql(`UPDATE followed_conversations SET opened_at = '2020-01-05T00:00:00Z' WHERE id = $1`, [id]);
  await storeOf(id, 'abc', '2020-01-06');
  await sql(`UPDATE conversation_events SET stored_at = '2020-01-06T00:00:00Z' WHERE conversation_id = $1`, [
    id,
  ]);
  await storeOf(id, 'de', '2026-01-06');
  return id;
}

async function makePast(owner?: TestUser): Promise<string> {
  await dropPartitions();
  await partitionsThere().createUntil(75);
  return await logWithPast(owner);
}

/** An event for each letter, in the order of the alphabet within a day. */
function eventsOf(letters: string, day: string): AgentEvent[] {
  return letters.split('').map((letter) => ({
    id: letter,
    kind: 'PauseEvent',
    source: 'user',
    timestamp: `${day}T12:00:${String(letter.charCodeAt(0) - 97).padStart(2, '0')}.000000`,
  }));
}

async function storeOf(id: string, letters: string, day: string): Promise<void> {
  await service.app.get(EventStore, { strict: false }).store(id, eventsOf(letters, day));
}

async function stored(id: string): Promise<string> {
  const rows = await sql<{ seq: number; event_id: string }>(
    'SELECT seq, event_id FROM conversation_events WHERE conversation_id = $1 ORDER BY seq',
    [id],
  );
  return rows.map(({ seq, event_id: letter }) => `${seq}${letter}`).join(' ');
}

async function found(path: string, app: TestApp = service): Promise<unknown> {
  const response = await fetch(`${app.url}/api/v1/conversation/${path}`, { headers: service.user.headers });
  return await response.json();
}

async function listed(id: string): Promise<string> {
  return jsonList(await found(`${id}/events/search`), 'items')
    .map((event) => jsonText(event, 'id'))
    .join('');
}

describe('partitions of events', () => {
  it('are there for more than two months before they are needed', async () => {
    expect(await partitions()).toEqual(expect.arrayContaining(['default', 'first', ...(await coming(2))]));
    expect(await partitionsThere().secondsAhead()).toBeGreaterThan(60 * 86_400);
  });

  it('are created once when two create them at the same time', async () => {
    await dropPartitions();

    const created = await Promise.all([0, 1].map(() => partitionsThere().createUntil(75)));

    expect(created.flat()).toEqual((await coming(0)).map((month) => `conversation_events_${month}`));
    expect(await partitions()).toEqual([...(await coming(0)), 'default']);
  });

  it('are missed by no event, and created from the next month on where one is missing', async () => {
    await dropPartitions();
    const id = await openLog(service, service.user.id, 'a-sandbox-that-is-gone');
    await storeOf(id, 'ab', '2026-01-06');
    expect(await partitionsThere().secondsAhead()).toBeLessThanOrEqual(0);

    await maintain();
    await storeOf(id, 'bc', '2026-01-06');

    expect(await partitions()).toEqual([...(await coming(1)), 'default']);
    expect(await stored(id)).toBe('1a 2b 3c');
    expect(await listed(id)).toBe('abc');
  });

  it('are created later when somebody uses the table for long, whose events are stored meanwhile', async () => {
    await dropPartitions();
    const id = await openLog(service, service.user.id, 'a-sandbox-that-is-gone');
    await service.dataSource.transaction(async (manager) => {
      await manager.query('SELECT 1 FROM followed_conversations WHERE id = $1 FOR UPDATE', [id]);

      await expect(partitionsThere().createUntil(75)).rejects.toThrow('lock timeout');
    });
    expect(await partitions()).toEqual(['default']);

    await partitionsThere().createUntil(75);
    await storeOf(id, 'a', '2026-01-06');

    expect(await partitions()).toEqual([...(await coming(0)), 'default']);
    expect(await stored(id)).toBe('1a');
  });
});

describe('events in several partitions', () => {
  it('are one log: listed, counted, found and streamed in order', async () => {
    const id = await makePast();

    expect(await listed(id)).toBe('abcde');
    expect(await found(`${id}/events/count`)).toBe(5);
    expect(await found(`${id}/events/count?kind__eq=PauseEvent`)).toBe(5);
    expect(await found(`${id}/events?id=e&id=a&id=x`)).toMatchObject([{ id: 'e' }, { id: 'a' }, null]);
    const stream = await EventSource.connect(`${service.url}/api/v1/conversation/${id}/events/stream`, {
      ...service.user.headers,
      'Last-Event-ID': '2',
    });
    await stream.untilCount(3);
    stream.close();
    expect(stream.ids).toEqual([3, 4, 5]);
  });

  it('are stored once, whichever of them come again', async () => {
    const id = await makePast();
    const since = new Date('2020-01-04T00:00:00Z');
    const events = service.app.get(EventRepository, { strict: false });
    const next = eventsOf('cf', '2026-01-07').map((event) => toStorable(event, new Date()));
    const after = { eventCount: 5, lastEventId: 'e', bytes: 1, isFull: false, since };

    expect(await events.appendMany([{ conversationId: id, events: next, after }])).toEqual(new Set());
    await events.append(id, next);
    await storeOf(id, 'abcdefg', '2026-01-07');

    expect(await stored(id)).toBe('1a 2b 3c 4d 5e 6f 7g');
  });

  it('are removed with their conversation, and nobody else sees them', async () => {
    const id = await makePast(await service.createUser());

    expect(await found(`${id}/events/search`)).toMatchObject({ status: 404 });
    await sql('DELETE FROM followed_conversations WHERE id = $1', [id]);

    expect(await sql('SELECT 1 FROM conversation_events')).toEqual([]);
  });
});

describe('EVENT_RETENTION_DAYS', () => {
  it('drops partitions that are older, and none at 0, and what is left is a log that goes on', async () => {
    const id = await makePast();
    const before = await partitions();
    await maintain();
    expect(await partitionsThere().dropOldest(36_500)).toBeNull();
    expect(await partitions()).toEqual(before);
    expect(await stored(id)).toBe('1a 2b 3c 4d 5e');
    const size = () =>
      sql('SELECT event_bytes::int AS bytes FROM followed_conversations WHERE id = $1', [id]);
    await sql(`UPDATE followed_conversations SET event_bytes = 1000 WHERE id = $1`, [id]);
    await sql(
      `INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body, stored_at)
       SELECT $1, -1, 'x', 'PauseEvent', now(), '{}', '2019-01-01T00:00:00Z'`,
      [id],
    );
    const [dropped] = await sql<{ bytes: number }>(
      'SELECT sum(octet_length(body::text))::int AS bytes FROM conversation_events_2020_01 WHERE conversation_id = $1',
      [id],
    );
    const replica = await createTestApp({ EVENT_RETENTION_DAYS: '30' }, service.databaseUrl);

    // A start looks first.
    const [left] = await size();
    expect(left).toEqual({ bytes: 1000 - (dropped?.bytes ?? 0) });
    expect(await partitions()).toEqual(before.filter((name) => name !== '2020_01'));
    expect(await listed(id)).toBe('de');
    expect(await found(`${id}/events/count`, replica)).toBe(2);
    const stream = await EventSource.connect(`${replica.url}/api/v1/conversation/${id}/events/stream`, {
      ...service.user.headers,
      'Last-Event-ID': '1',
    });
    await stream.untilCount(2);
    expect(stream.ids).toEqual([4, 5]);

    // An agent server whose log was cut is read from the first event on.
    await storeOf(id, 'abc', '2020-01-06');
    await storeOf(id, 'def', '2026-01-06');
    await stream.untilCount(3);
    stream.close();

    expect(await stored(id)).toBe('4d 5e 6f');
    expect(await found(`${id}/events/count`, replica)).toBe(3);
    await replica.close();
  });

  it('leaves a conversation without events where it is', async () => {
    const id = await makePast();
    await sql(`DELETE FROM conversation_events WHERE conversation_id = $1 AND seq > 3`, [id]);
    expect(await partitionsThere().dropOldest(30)).toBe('conversation_events_2020_01');

    expect(await found(`${id}/events/search`)).toEqual({ items: [], next_page_id: null });
    expect(await found(`${id}/events/count`)).toBe(0);
    await storeOf(id, 'f', '2026-01-07');
    expect(await stored(id)).toBe('6f');
  });
});
