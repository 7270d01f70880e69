import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddFork1766560000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE settings ADD COLUMN fork text');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE settings DROP COLUMN fork');
  }
}
