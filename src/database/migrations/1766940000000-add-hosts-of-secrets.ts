import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddHostsOfSecrets1766940000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE custom_secrets ADD COLUMN injection jsonb;
      CREATE UNIQUE INDEX custom_secrets_placeholder_key ON custom_secrets ((injection->>'placeholder'));
      ALTER TABLE sandbox_placeholders ADD COLUMN is_chosen boolean NOT NULL DEFAULT false;
      DROP INDEX sandbox_placeholders_placeholder_key;
      CREATE UNIQUE INDEX sandbox_placeholders_placeholder_key ON sandbox_placeholders (placeholder) WHERE NOT is_chosen`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DELETE FROM sandbox_placeholders WHERE is_chosen;
      DROP INDEX sandbox_placeholders_placeholder_key;
      CREATE UNIQUE INDEX sandbox_placeholders_placeholder_key ON sandbox_placeholders (placeholder);
      ALTER TABLE sandbox_placeholders DROP COLUMN is_chosen;
      DROP INDEX custom_secrets_placeholder_key;
      ALTER TABLE custom_secrets DROP COLUMN injection`);
  }
}
