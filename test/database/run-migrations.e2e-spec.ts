import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer } from 'node:net';
import { ConfigError } from '../../src/config/config.error.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { runMigrations } from '../../src/database/run-migrations.js';
import { startListening } from '../support/start-listening.js';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/test-database.js';

const PASSWORD = 'hush-password';

describe('a DATABASE_URL that cannot be reached', () => {
  let database: TestDatabase;
  let freePort: number;

  beforeAll(async () => {
    database = await createTestDatabase();
    const server = createServer();
    freePort = await startListening(server);
    await new Promise<void>((resolve) => {
      server.close(() => {
        resolve();
      });
    });
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
    ['another server', () => `postgres://user:${PASSWORD}@127.0.0.1:${freePort}/db`, /ECONNREFUSED/],
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
      const applied = await Promise.all(Array.from({ length: 3 }, () => runMigrations(database.url)));

      expect(applied.map(({ length }) => length).toSorted((a, b) => a - b)).toEqual([
        0,
        0,
        MIGRATIONS.length,
      ]);
    } finally {
      await database.drop();
    }
  });
});
