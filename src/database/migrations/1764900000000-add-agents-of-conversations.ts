import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which agent runs a conversation: after a restart of its sandbox the same one is started again. */
export class AddAgentsOfConversations1764900000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE app_conversations ADD COLUMN agent text`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE app_conversations DROP COLUMN agent`);
  }
}
