import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

/** A database of a test's own, with the current schema and no rows. */
export interface TestDatabase {
  url: string;
  /** Removes it; connections that are still open are ended. */
  drop(): Promise<void>;
}

/** The same server's URL for another database. */
export function databaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

/**
 * Clones the template that the global setup made; safe in any number of workers at once.
 *
 * @param template one of the test's own instead, to which no client is connected
 */
export async function createTestDatabase(template?: TestDatabase): Promise<TestDatabase> {
  const name = template ? new URL(template.url).pathname.slice(1) : required('SLIPWAY_TEST_TEMPLATE');
  return create(`template ${name} strategy file_copy`);
}

/** Has no tables, for tests that migrate themselves. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  return create('template template0');
}

async function create(options: string): Promise<TestDatabase> {
  const serverUrl = required('SLIPWAY_TEST_SERVER');
  const name = `slipway_test_${randomBytes(8).toString('hex')}`;
  await execute(serverUrl, `create database ${name} ${options}`);
  return {
    url: databaseUrl(serverUrl, name),
    drop: () => execute(serverUrl, `drop database if exists ${name} with (force)`),
  };
}

function required(variable: string): string {
  const value = process.env[variable];
  if (value === undefined) {
    throw new Error(
      `${variable} is not set: Jest's globalSetup must be test/support/jest/start-database.cjs`,
    );
  }
  return value;
}

/** Runs one statement on a connection of its own. */
export async function execute(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
