import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whoever works on a sandbox continues the trace of the request that asked for it. Earlier versions ignore the column. */
export class AddTracesOfSandboxes1765500000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE sandboxes ADD COLUMN traceparent text`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE sandboxes DROP COLUMN traceparent`);
  }
}
