import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddEgressOfUsers1766930000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE sandboxes ADD COLUMN egress_rules jsonb, ADD COLUMN egress_setup text;
      CREATE TABLE egress_permits (
        sandbox_id text NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
        host text NOT NULL,
        expires_at timestamptz NOT NULL,
        PRIMARY KEY (sandbox_id, host));
      CREATE TABLE egress_denials (
        sandbox_id text NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
        digest text NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        is_told boolean NOT NULL,
        value jsonb NOT NULL,
        PRIMARY KEY (sandbox_id, digest))`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE egress_denials;
      DROP TABLE egress_permits;
      ALTER TABLE sandboxes DROP COLUMN egress_rules, DROP COLUMN egress_setup`);
  }
}
