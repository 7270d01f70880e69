import { describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { createTestDatabase, databaseUrl } from './test-database.js';

async function rows(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

describe('createTestDatabase', () => {
  it('gives databases with the migrated schema that do not see each other, and removes them', async () => {
    const [first, second, third] = await Promise.all([
      createTestDatabase(),
      createTestDatabase(),
      createTestDatabase(),
    ]);
    expect(await rows(first.url, 'select count(*)::int > 0 as migrated from schema_migrations')).toEqual([
      { migrated: true },
    ]);
    await rows(first.url, 'create table mine (n int)');
    expect(await rows(second.url, `select to_regclass('mine') as found`)).toEqual([{ found: null }]);

    const open = new Client({ connectionString: first.url });
    open.on('error', () => undefined); // It is ended by the drop.
    await open.connect();
    await Promise.all([first.drop(), second.drop(), third.drop()]);
    await expect(rows(first.url, 'select 1')).rejects.toMatchObject({ code: '3D000' });
  });
});

describe('databaseUrl', () => {
  it.each([
    ['postgres://u:p@db.example:5433/postgres', 'postgres://u:p@db.example:5433/x'],
    [
      'postgres://u:p@localhost:5432/slipway?host=%2Ftmp%2Fdir&sslmode=disable',
      'postgres://u:p@localhost:5432/x?host=%2Ftmp%2Fdir&sslmode=disable',
    ],
  ])('keeps everything but the database of %s', (url, expected) => {
    expect(databaseUrl(url, 'x')).toBe(expected);
  });
});
