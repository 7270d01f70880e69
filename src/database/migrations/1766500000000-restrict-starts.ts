import type { MigrationInterface, QueryRunner } from 'typeorm';

export class RestrictStarts1766500000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE automation_webhooks ADD COLUMN writers_expr text;
      ALTER TABLE automation_runs ADD COLUMN actor text;`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE automation_runs DROP COLUMN actor;
      ALTER TABLE automation_webhooks DROP COLUMN writers_expr;`);
  }
}
