import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { EntityRows } from '../../src/database/entity-rows.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { insertSandboxRow } from '../support/sandbox-rows.js';

describe('EntityRows', () => {
  let app: TestApp;
  let dataSource: DataSource;

  beforeAll(async () => {
    app = await createTestApp();
    ({ dataSource } = app);
  });

  afterAll(async () => {
    await app.close();
  });

  it('turns a row into the same entity as the repository', async () => {
    const { id: userId } = await app.createUser();
    const { id } = await insertSandboxRow(dataSource, userId);
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
});
