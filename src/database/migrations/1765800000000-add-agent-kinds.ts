import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * An adopted conversation may run an agent of others that no list of the operator names. Secrets that a sandbox may see
 * are looked up by its starts. Earlier versions ignore the column.
 */
export class AddAgentKinds1765800000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE app_conversations ADD COLUMN agent_kind text`);
    await queryRunner.query(
      `CREATE INDEX app_conversation_start_tasks_sandbox_id_idx ON app_conversation_start_tasks (sandbox_id)`,
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX app_conversation_start_tasks_sandbox_id_idx`);
    await queryRunner.query(`ALTER TABLE app_conversations DROP COLUMN agent_kind`);
  }
}
