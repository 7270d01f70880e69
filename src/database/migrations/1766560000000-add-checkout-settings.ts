import type { MigrationInterface, QueryRunner } from 'typeorm';

const COLUMNS = { fork: 'text', clone_depth: 'integer', clone_filter: 'text' };

export class AddCheckoutSettings1766560000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    for (const [name, type] of Object.entries(COLUMNS)) {
      await queryRunner.query(`ALTER TABLE settings ADD COLUMN ${name} ${type}`);
    }
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const name of Object.keys(COLUMNS)) {
      await queryRunner.query(`ALTER TABLE settings DROP COLUMN ${name}`);
    }
  }
}
