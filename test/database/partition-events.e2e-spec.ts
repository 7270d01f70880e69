import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { PartitionEvents1765900000000 } from '../../src/database/migrations/1765900000000-partition-events.js';
import { runMigrations } from '../../src/database/run-migrations.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { createTestApp } from '../support/create-test-app.js';
import { createEmptyDatabase, type TestDatabase } from '../support/test-database.js';

/** How the release before stores events that go on after the last one, under a name that PostgreSQL knows by then. */
const APPEND = {
  name: 'append_of_before',
  text: `
    WITH advanced AS (
      UPDATE followed_conversations
      SET event_count = event_count + cardinality($3::text[]), last_event_id = $4, updated_at = now()
      WHERE id = $1 AND event_count = $2
      RETURNING id)
    INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
    SELECT advanced.id, $2::integer + e.position, e.event_id, 'PauseEvent', '2026-01-06T12:00:00Z',
      json_build_object('id', e.event_id, 'kind', 'PauseEvent', 'source', 'user', 'timestamp', '2026-01-06T12:00:00')
    FROM advanced, unnest($3::text[]) WITH ORDINALITY AS e (event_id, position)`,
};

/** How it reads them. */
const READ = {
  name: 'read_of_before',
  text: `SELECT seq, kind, body FROM (
    SELECT seq, kind, body::text AS body FROM conversation_events WHERE conversation_id = $1 AND seq > $2 ORDER BY seq LIMIT $3
  ) AS run ORDER BY seq`,
};

const SHAPE = `
  SELECT column_name, data_type, is_nullable FROM information_schema.columns
  WHERE table_name IN ('conversation_events', 'followed_conversations') ORDER BY table_name, column_name`;

let database: TestDatabase;
let before: Client;
let id: string;

/** A database of the release before, with a conversation of two events, and a connection of a replica of that release. */
beforeEach(async () => {
  database = await createEmptyDatabase();
  await migrated((dataSource) => dataSource.runMigrations({ transaction: 'each' }), -1);
  before = new Client({ connectionString: database.url });
  await before.connect();
  id = randomUUID();
  await before.query(
    `WITH owner AS (INSERT INTO users (id, email) VALUES (gen_random_uuid(), 'then@example.com') RETURNING id)
     INSERT INTO followed_conversations (id, user_id, sandbox_id, updated_at)
     SELECT $1, id, 'gone', '2026-01-06T12:00:00Z' FROM owner`,
    [id],
  );
  await append(0, 'ab');
  await before.query(`UPDATE followed_conversations SET updated_at = '2026-01-06T12:00:00Z'`);
  await read();
});

afterEach(async () => {
  await before.end();
  await database.drop();
});

/** @param count how many of the migrations up to this one; negative: without the last ones */
async function migrated<T>(work: (dataSource: DataSource) => Promise<T>, count?: number): Promise<T> {
  const upToThis = MIGRATIONS.slice(0, MIGRATIONS.indexOf(PartitionEvents1765900000000) + 1);
  const dataSource = await new DataSource({
    ...dataSourceOptions(database.url, 2),
    migrations: upToThis.slice(0, count),
  }).initialize();
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}

async function append(eventCount: number, letters: string): Promise<void> {
  await before.query({ ...APPEND, values: [id, eventCount, letters.split(''), letters.at(-1)] });
}

async function read(): Promise<string> {
  const { rows } = await before.query<{ seq: number; body: string }>({ ...READ, values: [id, 0, 100] });
  return rows.map(({ seq, body }) => `${seq}${jsonText(JSON.parse(body), 'id')}`).join(' ');
}

describe('the migration to partitions of events', () => {
  it('keeps events, serves the release before, and refuses what that one stores twice', async () => {
    await runMigrations(database.url);

    expect(await read()).toBe('1a 2b');
    await append(2, 'cd');
    await expect(append(4, 'b')).rejects.toThrow('duplicate key');
    expect(await read()).toBe('1a 2b 3c 4d');
    const { rows } = await before.query<{ name: string }>(
      'SELECT DISTINCT tableoid::regclass::text AS name FROM conversation_events',
    );
    expect(rows).toEqual([{ name: 'conversation_events_first' }]);
  });

  it('leaves logs of before readable, and both releases store in turns', async () => {
    await runMigrations(database.url);
    const service = await createTestApp({}, database.url);
    try {
      const event = {
        id: 'c',
        kind: 'PauseEvent',
        source: 'user',
        timestamp: '2026-01-06T12:00:00',
      } as const;
      await before.query('UPDATE followed_conversations SET user_id = $1', [service.user.id]);
      const found = await fetch(`${service.url}/api/v1/conversation/${id}/events/search`, {
        headers: service.user.headers,
      });
      expect(jsonList(await found.json(), 'items').map((item) => jsonText(item, 'id'))).toEqual(['a', 'b']);

      await service.app.get(EventStore, { strict: false }).store(id, [event]);
      await append(3, 'd');
      await service.app.get(EventStore, { strict: false }).store(id, [event, { ...event, id: 'e' }]);

      expect(await read()).toBe('1a 2b 3c 4d 5e');
      await before.query('DELETE FROM followed_conversations WHERE id = $1', [id]);
      expect(await read()).toBe('');
    } finally {
      await service.close();
    }
  });

  it('begins again after somebody held the table, and after it was broken off', async () => {
    await before.query(
      'ALTER TABLE followed_conversations ADD COLUMN opened_at timestamptz NOT NULL DEFAULT now()',
    );
    await before.query('BEGIN');
    await read();
    let attempts = 0;
    const applied = await runMigrations(database.url, {
      lockTimeoutMs: 100,
      onLocked: () => {
        attempts += 1;
        if (attempts === 1) {
          void before.query('COMMIT');
        }
      },
    });

    expect(applied).toContain('PartitionEvents1765900000000');
    expect(attempts).toBeGreaterThan(0);
    expect(await read()).toBe('1a 2b');
  });

  it('can be undone, with the events of all partitions', async () => {
    const { rows: shape } = await before.query<object>(SHAPE);
    await migrated(async (dataSource) => {
      await dataSource.runMigrations({ transaction: 'each' });
      await append(2, 'cd');
      await before.query(
        `INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body, stored_at)
         VALUES ($1, 5, 'e', 'PauseEvent', now(), '{"id":"e"}', now() + interval '70 days')`,
        [id],
      );
      await dataSource.undoLastMigration({ transaction: 'each' });
    });

    expect(await read()).toBe('1a 2b 3c 4d 5e');
    await expect(append(2, 'b')).resolves.toBeUndefined();
    expect((await before.query<object>(SHAPE)).rows).toEqual(shape);
  });
});
