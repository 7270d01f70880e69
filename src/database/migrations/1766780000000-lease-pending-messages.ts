import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LeasePendingMessages1766780000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE pending_messages ADD COLUMN leased_by text, ADD COLUMN leased_until timestamptz;
      CREATE INDEX pending_messages_leased_idx ON pending_messages (leased_until) WHERE leased_until IS NOT NULL`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE pending_messages DROP COLUMN leased_by, DROP COLUMN leased_until');
  }
}
