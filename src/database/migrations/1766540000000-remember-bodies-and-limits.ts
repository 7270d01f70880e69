import type { MigrationInterface, QueryRunner } from 'typeorm';

export class RememberBodiesAndLimits1766540000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE automation_event_bodies (
        user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE, source text NOT NULL, digest text NOT NULL,
        event_id uuid NOT NULL, created_at timestamptz NOT NULL, PRIMARY KEY (user_id, source, digest));
      CREATE INDEX automation_event_bodies_newest_idx ON automation_event_bodies (user_id, created_at);
      ALTER TABLE sandboxes ADD COLUMN limits jsonb`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE automation_event_bodies; ALTER TABLE sandboxes DROP COLUMN limits');
  }
}
