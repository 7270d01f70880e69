import type { MigrationInterface, QueryRunner } from 'typeorm';

export class KeepWorkOfRemovedUsers1766550200000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE users ADD COLUMN removed_at timestamptz');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE users DROP COLUMN removed_at');
  }
}
