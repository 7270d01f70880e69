import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddGitInstallations1766953000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider_tokens
        ADD COLUMN installation boolean NOT NULL DEFAULT false,
        ADD COLUMN login text`);
    await queryRunner.query('ALTER TABLE user_identities ADD COLUMN git jsonb');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE user_identities DROP COLUMN git');
    await queryRunner.query('DELETE FROM provider_tokens WHERE installation');
    await queryRunner.query('ALTER TABLE provider_tokens DROP COLUMN installation, DROP COLUMN login');
  }
}
