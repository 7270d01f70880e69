import type { MigrationInterface, QueryRunner } from 'typeorm';

export class KeepChanges1766550000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE kept_changes (
        conversation_id uuid PRIMARY KEY REFERENCES app_conversations (id) ON DELETE CASCADE,
        user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE, as_of timestamptz NOT NULL, files text NOT NULL);
      CREATE INDEX kept_changes_user_id_as_of_idx ON kept_changes (user_id, as_of);
      ALTER TABLE automation_runs ADD COLUMN event jsonb;
      ALTER TABLE automation_events ADD COLUMN subject jsonb;
      ALTER TABLE users ADD COLUMN removed_at timestamptz`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE kept_changes;
      ALTER TABLE automation_runs DROP COLUMN event;
      ALTER TABLE automation_events DROP COLUMN subject;
      ALTER TABLE users DROP COLUMN removed_at`);
  }
}
