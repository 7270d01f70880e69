import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Why a conversation has ended, beside its status. */
export class AddErrorsOfConversations1766290000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE followed_conversations ADD COLUMN error jsonb');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE followed_conversations DROP COLUMN error');
  }
}
