import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = ['user_identities', 'push_subscriptions'];

/** Rows from before have no maker here; the audit may name it. */
export class RememberMakersOfLinks1766975000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    for (const table of TABLES) {
      await queryRunner.query(`ALTER TABLE ${table} ADD COLUMN made_by_key text`);
    }
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of TABLES) {
      await queryRunner.query(`ALTER TABLE ${table} DROP COLUMN made_by_key`);
    }
  }
}
