import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddPlaceholders1766891000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE sandboxes ADD COLUMN egress_mode text;
      UPDATE sandboxes SET egress_mode = 'rules' WHERE egress_authority IS NOT NULL;
      CREATE TABLE sandbox_placeholders (
        sandbox_id text NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
        source text NOT NULL,
        placeholder text NOT NULL,
        addresses jsonb NOT NULL,
        PRIMARY KEY (sandbox_id, source));
      CREATE UNIQUE INDEX sandbox_placeholders_placeholder_key ON sandbox_placeholders (placeholder)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE sandbox_placeholders;
      ALTER TABLE sandboxes DROP COLUMN egress_mode`);
  }
}
