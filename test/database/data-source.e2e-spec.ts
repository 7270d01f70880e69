import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Column, DataSource, Entity, PrimaryColumn, QueryFailedError } from 'typeorm';
import { User } from '../../src/auth/user.repository.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { EntityRows } from '@slipway/database/entity-rows.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { pendingSchemaChanges } from '@slipway/database/migration-runner.js';
import { ServiceState } from '../../src/database/service-state.repository.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { insertSandboxRow } from '../support/sandbox-rows.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';

/** The same table as `ServiceState` describes, with a column that no migration makes. */
@Entity('service_state')
class ServiceStateWithMotto extends ServiceState {
  @PrimaryColumn('integer')
  override id: number;

  @Column('text', { nullable: true })
  motto: string | null;
}

/** The same table without the column `key_check`. */
@Entity('service_state')
class ServiceStateWithoutCheck {
  @PrimaryColumn('integer')
  id: number;

  @Column('uuid')
  instanceId: string;

  @Column('text', { nullable: true }) pushKeys: string | null;
}

let database: TestDatabase;
let dataSource: DataSource;

/** One connection, so that its prepared statements can be read. */
async function connect(...entities: (new () => object)[]): Promise<DataSource> {
  return await new DataSource({ ...dataSourceOptions(database.url, 1), entities }).initialize();
}

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await connect(Sandbox, User);
});

afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

describe('NamedStatement', () => {
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

it('EntityRows turns a row into the same entity as the repository', async () => {
  const [user] = await dataSource.query<[{ id: string }]>(
    `INSERT INTO users (id, email) VALUES (gen_random_uuid(), 'ada@example.com') RETURNING id`,
  );
  const { id } = await insertSandboxRow(dataSource, user.id);
  await dataSource.query(
    `UPDATE sandboxes SET overrides = '{"resourceFactor": 2, "image": null}', lease_until = now() WHERE id = $1`,
    [id],
  );
  const repository = dataSource.getRepository(Sandbox);
  const rows = new EntityRows(repository, 'box');
  const [row] = await dataSource.query<[Record<string, unknown>]>(
    `SELECT ${rows.columns} FROM sandboxes box WHERE id = $1`,
    [id],
  );

  const entity = rows.entity(row);
  expect(entity).toBeInstanceOf(Sandbox);
  expect(entity).toMatchObject({ id, overrides: { resourceFactor: 2, image: null } });
  expect(entity).toEqual(await repository.findOneByOrFail({ id }));
});

describe('pendingSchemaChanges', () => {
  it.each([
    ['nothing for an entity that fits', ServiceState, []],
    ['a column to add', ServiceStateWithMotto, ['ALTER TABLE "service_state" ADD "motto" text']],
    ['a column to remove', ServiceStateWithoutCheck, ['ALTER TABLE "service_state" DROP COLUMN "key_check"']],
  ])('finds %s', async (_, entity, changes) => {
    const other = await connect(entity);
    try {
      expect(await pendingSchemaChanges(other)).toEqual(changes);
    } finally {
      await other.destroy();
    }
  });
});
