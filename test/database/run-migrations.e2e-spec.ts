import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { runMigrations } from '../../src/database/data-source-options.js';
import { startFailureText } from '../../src/program/process-end.js';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';

const PASSWORD = 'hush-password';

/** As a later release may have it. */
class IndexAddresses9000000000000 implements MigrationInterface {
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('CREATE INDEX CONCURRENTLY sandboxes_address_idx ON sandboxes (address)');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP INDEX sandboxes_address_idx');
  }
}

/** Keeps what holds in the session of the migrations. */
class NoteTimeout9000000000003 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `CREATE TABLE noted AS SELECT current_setting('idle_session_timeout') AS timeout`,
    );
  }

  async down(): Promise<void> {}
}

class Sleep9000000000002 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('SELECT pg_sleep(0.5)');
  }

  async down(): Promise<void> {}
}

/** As a later release may have it. */
class AddMottos9000000000001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE sandboxes ADD COLUMN motto text');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE sandboxes DROP COLUMN motto');
  }
}

describe('a DATABASE_URL that cannot be reached', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
  });

  afterAll(async () => {
    await database.drop();
  });

  const changed = (change: (url: URL) => void): string => {
    const url = new URL(database.url);
    change(url);
    return url.href;
  };

  it.each([
    ['another server', () => `postgres://user:${PASSWORD}@127.0.0.1:1/db`, /ECONNREFUSED/],
    ['a port out of range', () => `postgres://user:${PASSWORD}@127.0.0.1:99999/db`, /cannot be reached: \S/],
    ['a broken percent-encoding', () => `postgres://user:${PASSWORD}%ZZ@127.0.0.1:1/db`, /malformed/i],
    [
      'another database',
      () =>
        changed((url) => {
          url.pathname = '/not_there';
        }),
      /"not_there"/,
    ],
    [
      'a certificate that is not there',
      () =>
        changed((url) => {
          url.searchParams.set('sslmode', 'verify-full');
          url.searchParams.set('sslrootcert', '/not/there.pem');
        }),
      /\/not\/there\.pem/,
    ],
  ])('is one line for the operator: %s', async (_name, url, reason) => {
    const error: unknown = await runMigrations(url()).catch((failure: unknown) => failure);

    expect(error).toBeInstanceOf(ConfigError);
    const { message } = error as ConfigError;
    expect(message).toMatch(/^DATABASE_URL: the database cannot be reached: .+$/);
    expect(message).toMatch(reason);
    expect(message).not.toContain(PASSWORD);
  });
});

describe('replicas that start together', () => {
  it('migrate once, also where an index is built that waits for everybody who looks at the database', async () => {
    const database = await createEmptyDatabase();
    try {
      const migrations = [...MIGRATIONS, IndexAddresses9000000000000];
      const applied = await Promise.all(
        Array.from({ length: 3 }, () => runMigrations(database.url, { migrations })),
      );

      expect(applied.map(({ length }) => length).toSorted((a, b) => a - b)).toEqual([
        0,
        0,
        migrations.length,
      ]);
    } finally {
      await database.drop();
    }
  });
});

describe('a migration that lasts', () => {
  it('keeps its lock where the database ends sessions that do nothing', async () => {
    const database = await createEmptyDatabase();
    const url = new URL(database.url);
    url.searchParams.set('options', '-c idle_session_timeout=1min');
    await runMigrations(url.href, { migrations: [NoteTimeout9000000000003] });
    const client = new Client({ connectionString: url.href });
    await client.connect();

    expect(
      (await client.query(`SELECT timeout, current_setting('idle_session_timeout') AS usual FROM noted`))
        .rows,
    ).toEqual([{ timeout: '0', usual: '1min' }]);
    await client.end();
    await database.drop();
  });

  it('fails with what the database said when its server stops', async () => {
    const database = await createEmptyDatabase();
    const migrating = runMigrations(database.url, { migrations: [...MIGRATIONS, Sleep9000000000002] });
    const failure = migrating.catch((error: unknown) => error);
    await until(async () => {
      const client = new Client({ connectionString: database.url });
      await client.connect();
      const { rowCount } = await client.query(
        `SELECT pg_terminate_backend(other.pid) FROM pg_stat_activity sleeping, pg_stat_activity other
         WHERE sleeping.datname = current_database() AND sleeping.query LIKE 'SELECT pg_sleep%'
           AND sleeping.state = 'active' AND other.datname = sleeping.datname AND other.pid <> pg_backend_pid()`,
      );
      await client.end();
      return (rowCount ?? 0) > 0;
    });

    expect(startFailureText(await failure)).toMatch(/^the database failed: .*terminat/);
    await database.drop();
  });
});

describe('a replica whose lock stays, as that of a machine that was lost', () => {
  it('is named by the process that holds the lock', async () => {
    const database = await createEmptyDatabase();
    const lost = new Client({ connectionString: database.url });
    await lost.connect();
    const { rows } = await lost.query(
      'SELECT pg_backend_pid() AS pid, inet_client_addr() AS address, pg_advisory_lock(7240815553)',
    );
    const lines: [string, object][] = [];
    const migrating = runMigrations(database.url, {
      lockTimeoutMs: 20,
      onWait: (message, fields) => lines.push([message, fields]),
    });
    await until(() => lines.length > 0);
    await lost.end();

    expect(await migrating).toHaveLength(MIGRATIONS.length);
    expect(lines[0]).toEqual([
      'migration waits for that of another replica',
      { server_pid: rows[0].pid, address: rows[0].address, since: expect.any(Date) },
    ]);
    await database.drop();
  });
});

describe('a migration of a table that somebody reads for long', () => {
  const migrations = [...MIGRATIONS, AddMottos9000000000001];
  let database: TestDatabase;
  let reader: Client;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    await runMigrations(database.url);
    reader = new Client({ connectionString: database.url });
    await reader.connect();
    await reader.query('BEGIN');
    await reader.query('SELECT * FROM sandboxes');
  });

  afterAll(async () => {
    await reader.end();
    await database.drop();
  });

  it('does not hold up the requests of older replicas, and is done when the reader has ended', async () => {
    const waits: object[] = [];
    const migrating = runMigrations(database.url, {
      migrations,
      lockTimeoutMs: 100,
      onWait: (_message, fields) => waits.push(fields),
    });
    const request = new Client({ connectionString: database.url });
    await request.connect();
    // Behind the migration, in the queue for the table: while the reader still reads, each of them gets through.
    for (let attempts = 1; attempts <= 3; attempts += 1) {
      await until(() => waits.length >= attempts);
      await request.query('SELECT * FROM sandboxes');
    }
    await request.end();

    await reader.query('COMMIT');

    expect(await migrating).toContain(AddMottos9000000000001.name);
    expect(waits.slice(0, 3)).toEqual([{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }]);
  });

  it('says what to look for when the reader never ends', async () => {
    await reader.query('BEGIN');
    await reader.query('SELECT * FROM schema_migrations');
    await reader.query("DELETE FROM schema_migrations WHERE name = 'AddMottos9000000000001'");
    await reader.query('COMMIT');
    await reader.query('BEGIN');
    await reader.query('SELECT * FROM sandboxes');

    await expect(
      runMigrations(database.url, { migrations, lockTimeoutMs: 50, patienceMs: 100 }),
    ).rejects.toThrow(/^DATABASE_URL: a migration could not lock its table: .*pg_stat_activity/);
  });
});
