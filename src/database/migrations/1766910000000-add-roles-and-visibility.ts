import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The first administrator owns the organization that all users are members of. */
export class AddRolesAndVisibility1766910000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE users ADD COLUMN is_owner boolean NOT NULL DEFAULT false;
      UPDATE users SET is_owner = true WHERE id = (
        SELECT id FROM users WHERE is_admin AND removed_at IS NULL
        ORDER BY email = 'admin@localhost' DESC, created_at, id LIMIT 1);
      ALTER TABLE app_conversations ADD COLUMN visibility text NOT NULL DEFAULT 'private'`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE app_conversations DROP COLUMN visibility;
      ALTER TABLE users DROP COLUMN is_owner`);
  }
}
