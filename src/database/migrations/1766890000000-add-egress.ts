import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddEgress1766890000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE sandboxes ADD COLUMN egress_authority text;
      CREATE TABLE egress_requests (
        sandbox_id text NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
        id bigint GENERATED ALWAYS AS IDENTITY,
        at timestamptz NOT NULL,
        entry jsonb NOT NULL,
        PRIMARY KEY (sandbox_id, id))`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE egress_requests;
      ALTER TABLE sandboxes DROP COLUMN egress_authority`);
  }
}
