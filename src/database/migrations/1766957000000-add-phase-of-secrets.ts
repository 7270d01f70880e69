import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddPhaseOfSecrets1766957000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE custom_secrets ADD COLUMN phase text');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE custom_secrets DROP COLUMN phase');
  }
}
