import type { MigrationInterface, QueryRunner } from 'typeorm';

const ID = '1f225cd6-f85e-43cc-9b44-96b41aadda1b';

/**
 * The row by which the organization owns settings, models, tool servers and secrets (docs/adr/0080). It counts as removed,
 * later than any moment: no list of users has it, no key and no conversation can be made for it, and no clean-up ends it.
 */
export class AddInstallationOrganization1766920000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `INSERT INTO users (id, email, name, kind, removed_at)
       VALUES ($1, 'organization@removed.invalid', 'The organization', 'service', 'infinity')`,
      [ID],
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DELETE FROM users WHERE id = $1', [ID]);
  }
}
