import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Column, DataSource, Entity, PrimaryColumn } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { pendingSchemaChanges } from '../../src/database/run-migrations.js';
import { ServiceState } from '../../src/database/service-state.repository.js';
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
}

describe('pendingSchemaChanges', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
  });

  afterAll(async () => {
    await database.drop();
  });

  it.each([
    ['nothing for an entity that fits', ServiceState, []],
    ['a column to add', ServiceStateWithMotto, ['ALTER TABLE "service_state" ADD "motto" text']],
    ['a column to remove', ServiceStateWithoutCheck, ['ALTER TABLE "service_state" DROP COLUMN "key_check"']],
  ])('finds %s', async (_, entity, changes) => {
    const dataSource = await new DataSource({
      ...dataSourceOptions(database.url, 1),
      entities: [entity],
    }).initialize();
    try {
      expect(await pendingSchemaChanges(dataSource)).toEqual(changes);
    } finally {
      await dataSource.destroy();
    }
  });
});
