import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Unfinished starts are few among all that ever were, and looked for all the time. */
export class IndexUnfinishedStarts1764100000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE INDEX app_conversation_start_tasks_unfinished_idx
      ON app_conversation_start_tasks (user_id) WHERE status NOT IN ('READY', 'ERROR')`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX app_conversation_start_tasks_unfinished_idx`);
  }
}
