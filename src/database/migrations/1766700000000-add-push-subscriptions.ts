import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddPushSubscriptions1766700000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE service_state ADD COLUMN push_keys text;
      CREATE TABLE push_subscriptions (
        id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        endpoint_hash text NOT NULL CONSTRAINT push_subscriptions_endpoint_hash_key UNIQUE, subscription text NOT NULL,
        kinds text[] NOT NULL, created_at timestamptz NOT NULL);
      CREATE INDEX push_subscriptions_user_id_idx ON push_subscriptions (user_id, created_at);
      CREATE TABLE push_messages (
        id uuid PRIMARY KEY, subscription_id uuid NOT NULL REFERENCES push_subscriptions (id) ON DELETE CASCADE,
        topic text NOT NULL, message json NOT NULL, created_at timestamptz NOT NULL,
        due_at timestamptz, leased_by text, leased_until timestamptz, attempts integer NOT NULL DEFAULT 0,
        CONSTRAINT push_messages_subscription_id_topic_key UNIQUE (subscription_id, topic));
      CREATE INDEX push_messages_due_at_idx ON push_messages (due_at);
      ALTER TABLE kept_changes ADD COLUMN paths text`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE kept_changes DROP COLUMN paths;
      DROP TABLE push_messages;
      DROP TABLE push_subscriptions;
      ALTER TABLE service_state DROP COLUMN push_keys`);
  }
}
