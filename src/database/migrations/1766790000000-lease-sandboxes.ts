import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LeaseSandboxes1766790000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE sandboxes ADD COLUMN due_at timestamptz NOT NULL DEFAULT now(), ADD COLUMN attempts integer NOT NULL DEFAULT 0`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE sandboxes DROP COLUMN due_at, DROP COLUMN attempts');
  }
}
