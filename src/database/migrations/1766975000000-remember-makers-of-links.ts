import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = ['push_subscriptions', 'user_identities'];

/** What was there before is known to have been made by a key where the audit says so. */
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
