import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A backup holds up the check of the table for as long; something that hangs shall not. */
const MAX_WAIT_MS = 600_000;
/** How long a statement that holds up others waits for a table; the migration is begun again after it. */
const LOCK_TIMEOUT_MS = 2_000;

/** Replicas of the release before store events while they are replaced; all of these are in the partition that was the table. */
const NEXT_MONTH = `
  SELECT to_char(date_trunc('month', (now() + interval '7 days') AT TIME ZONE 'UTC') + interval '1 month', 'YYYY-MM-DD') AS month`;

/**
 * Events are stored in partitions by month. The table becomes the first partition as it is: nothing is copied, and while it is
 * checked, others write to it. Its rows count as stored now. Statements of earlier releases find what they know, and their rows
 * go into the same table as before until its last month has ended.
 */
export class PartitionEvents1765900000000 implements MigrationInterface {
  /** Nothing but the exchange of the tables, at the end, locks out others. */
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    if (await isPartitioned(queryRunner)) {
      return;
    }
    await queryRunner.query('SET statement_timeout = 0');
    await queryRunner.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
    try {
      // Before the other one: no event is stored before its log is opened. Neither default writes a row.
      await queryRunner.query(`
        ALTER TABLE followed_conversations
        ADD COLUMN IF NOT EXISTS opened_at timestamptz NOT NULL DEFAULT now()`);
      await queryRunner.query(`
        ALTER TABLE conversation_events ADD COLUMN IF NOT EXISTS stored_at timestamptz NOT NULL DEFAULT now()`);
      const month = await nextMonth(queryRunner);
      // Proves that the table fits its partition, so that the exchange need not read it.
      await queryRunner.query('ALTER TABLE conversation_events DROP CONSTRAINT IF EXISTS stored_before');
      await queryRunner.query(`
        ALTER TABLE conversation_events
        ADD CONSTRAINT stored_before CHECK (stored_at < '${month} 00:00:00+00') NOT VALID`);
      await queryRunner.query(`SET lock_timeout = ${MAX_WAIT_MS}`);
      await queryRunner.query('ALTER TABLE conversation_events VALIDATE CONSTRAINT stored_before');
      await queryRunner.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
      await exchange(queryRunner, month);
    } finally {
      await queryRunner.query('RESET lock_timeout');
      await queryRunner.query('RESET statement_timeout');
    }
  }

  /** Copies events that were stored since the first partition has ended. */
  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.startTransaction();
    try {
      await queryRunner.query(
        'LOCK TABLE followed_conversations, conversation_events IN ACCESS EXCLUSIVE MODE',
      );
      await queryRunner.query('ALTER TABLE conversation_events RENAME TO partitioned_events');
      await queryRunner.query(`
        CREATE TABLE conversation_events (
          conversation_id uuid NOT NULL,
          seq integer NOT NULL,
          event_id text NOT NULL,
          kind text NOT NULL,
          occurred_at timestamptz NOT NULL,
          body json NOT NULL
        )`);
      await queryRunner.query(`
        INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
        SELECT conversation_id, seq, event_id, kind, occurred_at, body FROM partitioned_events`);
      await queryRunner.query('DROP TABLE partitioned_events');
      await queryRunner.query(`
        ALTER TABLE conversation_events
        ADD CONSTRAINT conversation_events_pkey PRIMARY KEY (conversation_id, seq),
        ADD CONSTRAINT conversation_events_conversation_id_fkey
          FOREIGN KEY (conversation_id) REFERENCES followed_conversations (id) ON DELETE CASCADE`);
      await queryRunner.query(`
        CREATE UNIQUE INDEX conversation_events_conversation_id_event_id_key
        ON conversation_events (conversation_id, event_id)`);
      await queryRunner.query('ALTER TABLE followed_conversations DROP COLUMN opened_at');
      await queryRunner.commitTransaction();
    } catch (error) {
      await queryRunner.rollbackTransaction();
      throw error;
    }
  }
}

/** After a loss of the connection between the exchange and the note that it was done. */
async function isPartitioned(queryRunner: QueryRunner): Promise<boolean> {
  const rows: unknown[] = await queryRunner.query(
    `SELECT 1 FROM pg_class WHERE oid = to_regclass('conversation_events') AND relkind = 'p'`,
  );
  return rows.length > 0;
}

async function nextMonth(queryRunner: QueryRunner): Promise<string> {
  const [row]: { month: string }[] = await queryRunner.query(NEXT_MONTH);
  return row?.month ?? '';
}

/** As many as the service would create at its start. */
async function comingMonths(
  queryRunner: QueryRunner,
  first: string,
): Promise<{ name: string; begins: string; ends: string }[]> {
  return await queryRunner.query(
    `SELECT to_char(month, '"conversation_events_"YYYY_MM') AS name, to_char(month, 'YYYY-MM-DD') AS begins,
       to_char(month + interval '1 month', 'YYYY-MM-DD') AS ends
     FROM generate_series($1::timestamp, (now() + interval '75 days') AT TIME ZONE 'UTC', interval '1 month') AS month`,
    [first],
  );
}

/** Partitions have the unique keys, since one of the whole table would need `stored_at` in it, and then say nothing. */
async function exchange(queryRunner: QueryRunner, month: string): Promise<void> {
  await queryRunner.startTransaction();
  try {
    // In the order in which statements of requests lock them.
    await queryRunner.query(
      'LOCK TABLE followed_conversations, conversation_events IN ACCESS EXCLUSIVE MODE',
    );
    await queryRunner.query('ALTER TABLE conversation_events RENAME TO conversation_events_first');
    await queryRunner.query(`
      CREATE TABLE conversation_events (
        conversation_id uuid NOT NULL,
        seq integer NOT NULL,
        event_id text NOT NULL,
        kind text NOT NULL,
        occurred_at timestamptz NOT NULL,
        body json NOT NULL,
        stored_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT conversation_events_conversation_id_fkey
          FOREIGN KEY (conversation_id) REFERENCES followed_conversations (id) ON DELETE CASCADE
      ) PARTITION BY RANGE (stored_at)`);
    await queryRunner.query(`
      ALTER TABLE conversation_events ATTACH PARTITION conversation_events_first
      FOR VALUES FROM (MINVALUE) TO ('${month} 00:00:00+00')`);
    await queryRunner.query('ALTER TABLE conversation_events_first DROP CONSTRAINT stored_before');
    for (const { name, begins, ends } of await comingMonths(queryRunner, month)) {
      await queryRunner.query(`
        CREATE TABLE ${name} PARTITION OF conversation_events (
          CONSTRAINT ${name}_pkey PRIMARY KEY (conversation_id, seq)
        ) FOR VALUES FROM ('${begins} 00:00:00+00') TO ('${ends} 00:00:00+00')`);
      await queryRunner.query(
        `CREATE UNIQUE INDEX ${name}_event_id_key ON ${name} (conversation_id, event_id)`,
      );
    }
    // What is stored while the partition of its month is missing.
    await queryRunner.query(`
      CREATE TABLE conversation_events_default PARTITION OF conversation_events (
        CONSTRAINT conversation_events_default_pkey PRIMARY KEY (conversation_id, seq)
      ) DEFAULT`);
    await queryRunner.query(`
      CREATE UNIQUE INDEX conversation_events_default_event_id_key
      ON conversation_events_default (conversation_id, event_id)`);
    await queryRunner.query(
      'CREATE INDEX conversation_events_default_stored_at_idx ON conversation_events_default (stored_at)',
    );
    await queryRunner.commitTransaction();
  } catch (error) {
    await queryRunner.rollbackTransaction();
    throw error;
  }
}
