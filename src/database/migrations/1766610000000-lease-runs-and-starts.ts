import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = ['automation_runs', 'app_conversation_start_tasks'];

/** The release before works by jobs on what it makes: it has a moment for that before this one does. */
const leases = (table: string): string => `
  ALTER TABLE ${table} ADD COLUMN due_at timestamptz DEFAULT now() + interval '15 seconds',
    ADD COLUMN leased_by text, ADD COLUMN leased_until timestamptz, ADD COLUMN attempts integer NOT NULL DEFAULT 0,
    ADD COLUMN traceparent text`;

const INDEXES = `
  CREATE INDEX automation_runs_due_idx ON automation_runs (due_at)
    WHERE status IN ('PENDING', 'RUNNING') AND start_task_ids IS NULL;
  CREATE INDEX app_conversation_start_tasks_due_idx ON app_conversation_start_tasks (host_id, due_at)
    WHERE status NOT IN ('READY', 'ERROR')`;

export class LeaseRunsAndStarts1766610000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    for (const table of TABLES) {
      await queryRunner.query(leases(table));
    }
    await queryRunner.query(INDEXES);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of TABLES) {
      await queryRunner.query(`
        ALTER TABLE ${table} DROP COLUMN due_at, DROP COLUMN leased_by, DROP COLUMN leased_until, DROP COLUMN attempts,
          DROP COLUMN traceparent`);
    }
  }
}
