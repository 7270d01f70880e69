import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Reading all events would take long, so a worker counts those that were stored before they were counted. */
export class NameCausesAndCountEvents1766760000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE sandboxes ADD COLUMN cause jsonb;
      ALTER TABLE followed_conversations ADD COLUMN uncounted_events integer NOT NULL DEFAULT 0;
      UPDATE followed_conversations SET event_bytes = 0, uncounted_events = event_count WHERE event_count > 0;
      CREATE INDEX followed_conversations_uncounted_idx ON followed_conversations (id) WHERE uncounted_events > 0`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX followed_conversations_uncounted_idx;
      ALTER TABLE followed_conversations DROP COLUMN uncounted_events;
      ALTER TABLE sandboxes DROP COLUMN cause`);
  }
}
