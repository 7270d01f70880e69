import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What a conversation is to result in, what it has resulted in, and what its user notes of it. */
export class AddResultsAndMetadata1764700000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE app_conversations
        ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}',
        ADD COLUMN result_schema jsonb,
        ADD COLUMN working_branch text,
        ADD COLUMN pull_requests jsonb NOT NULL DEFAULT '[]'`);
    await queryRunner.query('ALTER TABLE followed_conversations ADD COLUMN result jsonb');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE followed_conversations DROP COLUMN result');
    await queryRunner.query(`
      ALTER TABLE app_conversations
        DROP COLUMN metadata, DROP COLUMN result_schema, DROP COLUMN working_branch, DROP COLUMN pull_requests`);
  }
}
