import type { MigrationInterface, QueryRunner } from 'typeorm';

export class IndexRepositoriesOfConversations1766952000000 implements MigrationInterface {
  // PostgreSQL builds an index beside writes only outside of a transaction.
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    // What a build that was interrupted leaves behind is never used.
    await queryRunner.query('DROP INDEX CONCURRENTLY IF EXISTS app_conversations_repository_idx');
    await queryRunner.query(`
      CREATE INDEX CONCURRENTLY app_conversations_repository_idx ON app_conversations
      USING gin (repository_entries(git_provider, selected_repository)) WHERE selected_repository IS NOT NULL`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP INDEX CONCURRENTLY app_conversations_repository_idx');
  }
}
