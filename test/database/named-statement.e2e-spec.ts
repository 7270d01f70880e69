import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DataSource, QueryFailedError } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { NamedStatement } from '../../src/database/named-statement.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';

describe('NamedStatement', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase();
    // One connection, so that its prepared statements can be read.
    dataSource = await new DataSource(dataSourceOptions(database.url, 1)).initialize();
  });

  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  it('is prepared once under its name', async () => {
    const double = new NamedStatement<{ doubled: number }>('test_double', 'SELECT $1::int * 2 AS doubled');

    expect(await double.run(dataSource, [2])).toEqual([{ doubled: 4 }]);
    expect(await double.run(dataSource, [3])).toEqual([{ doubled: 6 }]);

    const prepared = await dataSource.query<unknown[]>(
      `SELECT name FROM pg_prepared_statements WHERE name LIKE 'test_%'`,
    );
    expect(prepared).toEqual([{ name: 'test_double' }]);
  });

  it('runs in a transaction, on its connection', async () => {
    const note = new NamedStatement('test_note', 'INSERT INTO notes VALUES ($1) RETURNING text');
    const count = new NamedStatement<{ count: number }>(
      'test_notes',
      'SELECT count(*)::int AS count FROM notes',
    );
    await dataSource.query('CREATE TABLE notes (text text)');

    const undone = dataSource.transaction(async (manager) => {
      expect(await note.within(manager, ['hello'])).toEqual([{ text: 'hello' }]);
      expect(await count.within(manager, [])).toEqual([{ count: 1 }]);
      throw new Error('not kept');
    });

    await expect(undone).rejects.toThrow('not kept');
    expect(await count.run(dataSource, [])).toEqual([{ count: 0 }]);
    await expect(count.within(dataSource.manager, [])).rejects.toThrow('test_notes belongs in a transaction');
  });

  it('fails like every other statement, without the values', async () => {
    const broken = new NamedStatement('test_broken', 'SELECT $1::text FROM no_such_table');

    const error = await broken.run(dataSource, ['hush-value']).catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(QueryFailedError);
    expect(error).toMatchObject({ driverError: { code: '42P01' } });
    expect(JSON.stringify(error)).not.toContain('hush-value');
  });
});
