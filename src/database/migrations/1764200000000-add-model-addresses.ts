import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Where a conversation's model is called is the service's knowledge: what its sandbox says may be written by tools. */
export class AddModelAddresses1764200000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE app_conversations ADD COLUMN llm_base_url text`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE app_conversations DROP COLUMN llm_base_url`);
  }
}
