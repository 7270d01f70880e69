import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import type { LogProgress } from '../../src/v1/events/followed-conversation.repository.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';

let database: TestDatabase;
let app: TestApp;
let sandbox: string;
let id: string;

beforeAll(async () => {
  database = await createTestDatabase();
  app = await createTestApp({}, database.url);
  // Nobody listens there, so that only the test stores events.
  sandbox = await insertRunningSandbox(app, app.user.id, { address: 'http://127.0.0.1:1', key: 'k' });
});

afterAll(async () => {
  await app.app.close();
  await database.drop();
});

beforeEach(async () => {
  id = await openLog(app, app.user.id, sandbox);
  await store('ab', null);
});

/** Stores an event for each letter. */
async function store(letters: string, after: LogProgress | null): Promise<boolean> {
  const events = letters.split('').map((letter) => ({
    id: letter,
    kind: 'PauseEvent' as const,
    source: 'user' as const,
    timestamp: '2026-11-22T12:00:00.000000',
  }));
  return await app.app.get(EventStore).store(id, events, after);
}

async function stored(): Promise<{ letters: string; log: LogProgress }> {
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
    ['it ends there', 'cd', { eventCount: 2, lastEventId: 'b' }, 'abcd'],
    ['it has grown meanwhile', 'bcd', { eventCount: 1, lastEventId: 'a' }, 'abcd'],
    ['it ends with another event', 'c', { eventCount: 2, lastEventId: 'x' }, 'abc'],
    ['some of them are known', 'abc', { eventCount: 2, lastEventId: 'b' }, 'abc'],
    ['all of them are known', 'ab', { eventCount: 2, lastEventId: 'b' }, 'ab'],
    ['one comes twice', 'ccd', { eventCount: 2, lastEventId: 'b' }, 'abcd'],
    ['nothing is believed', 'bc', null, 'abc'],
  ])('are stored once and in order when %s', async (_when, letters, after, expected) => {
    expect(await store(letters, after)).toBe(true);

    expect(await stored()).toEqual({
      letters: expected,
      log: { eventCount: expected.length, lastEventId: letters.at(-1) },
    });
  });

  it('are stored once when several processes store them at the same time', async () => {
    const after = { eventCount: 2, lastEventId: 'b' };

    await Promise.all(['c', 'cd', 'cde', 'cdef'].map((letters) => store(letters, after)));

    expect((await stored()).letters).toBe('abcdef');
  });

  it('are not stored when the conversation was removed', async () => {
    await app.dataSource.query('DELETE FROM followed_conversations WHERE id = $1', [id]);

    expect(await store('c', { eventCount: 2, lastEventId: 'b' })).toBe(false);
  });
});
