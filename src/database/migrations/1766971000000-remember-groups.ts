import type { MigrationInterface, QueryRunner } from 'typeorm';

export class RememberGroups1766971000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE user_identities ADD COLUMN groups text[]');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE user_identities DROP COLUMN groups');
  }
}
