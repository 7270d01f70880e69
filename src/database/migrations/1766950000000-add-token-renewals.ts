import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddTokenRenewals1766950000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider_tokens
        ADD COLUMN renewal text,
        ADD COLUMN expires_at timestamptz`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider_tokens
        DROP COLUMN renewal,
        DROP COLUMN expires_at`);
  }
}
