import type { MigrationInterface, QueryRunner } from 'typeorm';

export class NameEventsOfRuns1766550100000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE automation_runs ADD COLUMN event jsonb;
      ALTER TABLE automation_events ADD COLUMN subject jsonb`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE automation_runs DROP COLUMN event;
      ALTER TABLE automation_events DROP COLUMN subject`);
  }
}
