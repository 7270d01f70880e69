import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import request from 'supertest';
import { DataSource } from 'typeorm';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { findDatabase } from '@slipway/database/database-addresses.js';
import { dataSourceOptions, runMigrations } from '../../src/database/data-source-options.js';
import { EventStreamsService } from '../../src/v1/events/stream/event-streams.service.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { EventSource } from '../support/event-source.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { type GitHosts, startGitHosts } from '../support/git-hosts.js';
import { findPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { runKeysOn } from '../support/run-keys.js';
import { say, StartsClient } from '../support/starts-client.js';
import { createTestDatabase, execute, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';

const KEYS = { ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}` };

/** CI installs it; elsewhere `apt-get install pgbouncer` does. */
const describeWithPgBouncer = findPgBouncer() === null ? describe.skip : describe;

describeWithPgBouncer('PgBouncer in transaction mode (skipped where it is not installed)', () => {
  let database: TestDatabase;
  let pooler: PgBouncer;
  let pooled: string;
  let hosts: GitHosts;
  let backend: InProcessSandboxBackend;
  let app: TestApp;

  beforeAll(async () => {
    database = await createTestDatabase();
    pooler = await startPgBouncer(database.url, 'transaction');
    pooled = pooler.urlOf(database.url);
    hosts = await startGitHosts();
    backend = new InProcessSandboxBackend();
    app = await createTestApp({ ...hosts.environment, DATABASE_DIRECT_URL: database.url }, pooled, {
      sandboxBackend: backend,
    });
  });

  afterAll(async () => {
    await app.close();
    await backend.close();
    await hosts.close();
    await pooler.stop();
    await database.drop();
  });

  const api = (path: string, members?: object): request.Test => {
    const agent = request(app.url);
    const test = members === undefined ? agent.get(path) : agent.post(path).send(members);
    return test.set(app.user.headers);
  };

  /** What a backend of this database keeps from one client to the next: all that the pooler holds are looked at. */
  async function sessionStateOfServers(): Promise<{ prepared: string[]; locks: number; channels: string[] }> {
    const clients = Array.from({ length: 4 }, () => new Client({ connectionString: pooled }));
    await Promise.all(clients.map((client) => client.connect()));
    try {
      const prepared: string[] = [];
      const channels: string[] = [];
      await Promise.all(clients.map((client) => client.query('BEGIN')));
      for (const client of clients) {
        const { rows } = await client.query<{ name: string }>('SELECT name FROM pg_prepared_statements');
        prepared.push(...rows.map(({ name }) => name));
        const listening = await client.query<{ name: string }>('SELECT pg_listening_channels() AS name');
        channels.push(...listening.rows.map(({ name }) => name));
      }
      const { rows } = (await clients[0]?.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory'
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      )) ?? { rows: [] };
      await Promise.all(clients.map((client) => client.query('COMMIT')));
      return { prepared, locks: rows[0]?.count ?? 0, channels };
    } finally {
      await Promise.all(clients.map((client) => client.end()));
    }
  }

  it('stores and returns settings, many at a time', async () => {
    const users = await Promise.all(Array.from({ length: 4 }, () => app.createUser()));
    await Promise.all(
      Array.from({ length: 60 }, (_none, turn) =>
        request(app.url)
          .post('/api/settings')
          .set(users[turn % 4]?.headers ?? {})
          .send(turn % 3 === 0 ? { language: 'en' } : { language: 'en', mcp_config: null })
          .expect(200),
      ),
    );
    const answers = await Promise.all(users.map(({ headers }) => app.as({ headers }).get('/api/settings')));
    expect(answers.map(({ status, body }) => [status, body.language])).toEqual(users.map(() => [200, 'en']));
  });

  it('keeps tokens and finds tasks with them', async () => {
    await api('/api/add-git-providers', hosts.tokens).expect(200);

    const { status, body } = await api('/api/user/suggested-tasks');

    expect(status).toBe(200);
    expect(body.length).toBeGreaterThan(0);
  });

  it('starts a conversation, jobs included', async () => {
    const client = new StartsClient(app, await app.createUser());
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });

    const ready = await client.reached(await client.start(say('say hello')), 'READY');

    expect(ready.sandboxMade).toBe(true);
    const agent = backend.boxes.get(ready.sandboxId)?.server.client;
    await until(async () =>
      JSON.stringify(await agent?.get(`/api/conversations/${ready.appConversationId}`)).includes(
        '"finished"',
      ),
    );
  });

  it('wakes a stream of events when another replica stores one', async () => {
    const other = await createTestApp({ DATABASE_DIRECT_URL: database.url }, pooled, {
      sandboxBackend: backend,
    });
    const agent = await FakeConversationServer.start();
    try {
      const sandbox = await insertRunningSandbox(app, app.user.id, agent);
      const id = await openLog(app, app.user.id, sandbox);
      agent.open(id);
      const streams = await Promise.all(
        [app, other].map(({ url }) =>
          EventSource.connect(`${url}/api/v1/conversation/${id}/events/stream`, app.user.headers),
        ),
      );
      agent.append(id);
      await Promise.all(streams.map((stream) => stream.untilCount(1)));
      // One replica follows the log; the other one's stream is to be told, and does not look by itself.
      for (const replica of [app, other]) {
        clearInterval(replica.app.get(EventStreamsService, { strict: false })['timer']);
      }
      agent.append(id);
      await Promise.all(streams.map((stream) => stream.untilCount(2)));
      streams.forEach((stream) => stream.close());

      expect(streams.map(({ ids }) => ids)).toEqual([
        [1, 2],
        [1, 2],
      ]);
    } finally {
      await app.dataSource.query(
        `UPDATE sandboxes SET status = 'PAUSED', address = NULL WHERE host_id = $1`,
        ['a-host-of-nobody'],
      );
      await agent.close();
      await other.close();
    }
  });

  it('leaves nothing of one client to the next', async () => {
    await api('/api/settings', { language: 'en' }).expect(200);

    expect(await sessionStateOfServers()).toEqual({ prepared: [], locks: 0, channels: [] });
  });

  it('ends statements and transactions that take too long', async () => {
    const limits = async (manager: Pick<DataSource, 'query'>): Promise<unknown> =>
      await manager.query(
        `SELECT current_setting('statement_timeout') AS statement,
                current_setting('idle_in_transaction_session_timeout') AS idle`,
      );
    expect(await app.dataSource.transaction((manager) => limits(manager))).toEqual([
      { statement: '15s', idle: '30s' },
    ]);
    // A connection of the pooler to the server that was opened before keeps what it had.
    await execute(
      database.url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    await until(async () => (await api('/api/settings')).status === 200);
    expect(await limits(app.dataSource)).toMatchObject([{ statement: '15s' }]);
  });

  it('migrates, and serves commands, over the direct address', async () => {
    const fresh = await createTestDatabase();
    try {
      await execute(
        fresh.url,
        'DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP SCHEMA IF EXISTS pgboss CASCADE',
      );
      const { addresses } = await findDatabase(pooler.urlOf(fresh.url), fresh.url);
      expect(await runMigrations(addresses.direct)).not.toEqual([]);

      const { status, stdout } = await runKeysOn(pooler.urlOf(fresh.url), ['create', '--admin'], {
        ...KEYS,
        DATABASE_DIRECT_URL: fresh.url,
      });

      expect({ status, keys: stdout.length }).toEqual({ status: 0, keys: 1 });
    } finally {
      await fresh.drop();
    }
  });

  it('asks for the direct address where there is none', async () => {
    await expect(findDatabase(pooled, null)).rejects.toThrow(
      new ConfigError(
        'DATABASE_URL: leads to a connection pooler that does not keep sessions; ' +
          'set DATABASE_DIRECT_URL to an address of PostgreSQL itself, for migrations and notifications',
      ),
    );
  });

  it('refuses a direct address that is none', async () => {
    const stranger = await createTestDatabase();
    try {
      for (const direct of [pooled, stranger.url]) {
        await expect(findDatabase(pooled, direct)).rejects.toThrow(
          /^DATABASE_DIRECT_URL: must lead to the database of DATABASE_URL without a pooler in between; /,
        );
      }
    } finally {
      await stranger.drop();
    }
  });

  it('needs no direct address behind a pooler that keeps sessions', async () => {
    const session = await startPgBouncer(database.url, 'session', ['server_reset_query = DISCARD ALL']);
    try {
      const url = session.urlOf(database.url);
      const { addresses } = await findDatabase(url, null);
      const dataSource = await new DataSource(dataSourceOptions(addresses.main, 1)).initialize();
      await dataSource.destroy();

      expect(addresses).toEqual({ main: { url, pooled: true }, direct: { url, pooled: true } });
    } finally {
      await session.stop();
    }
  });

  it('is asked nothing more where there is no pooler', async () => {
    const address = { url: database.url, pooled: false };

    expect(await findDatabase(database.url, null)).toEqual({
      addresses: { main: address, direct: address },
      notices: [],
    });
  });
});
