import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Keys without scopes may do all that their users may, as before. */
export class LimitKeysAndUsers1766710000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE users ADD COLUMN disabled_at timestamptz, ADD COLUMN kind text NOT NULL DEFAULT 'person';
      CREATE INDEX users_disabled_idx ON users (id) WHERE disabled_at IS NOT NULL;
      ALTER TABLE api_keys
        ADD COLUMN scopes text[], ADD COLUMN not_before timestamptz, ADD COLUMN of_device boolean NOT NULL DEFAULT false`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE api_keys DROP COLUMN scopes, DROP COLUMN not_before, DROP COLUMN of_device;
      DROP INDEX users_disabled_idx;
      ALTER TABLE users DROP COLUMN disabled_at, DROP COLUMN kind`);
  }
}
