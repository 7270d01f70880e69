import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Conversations that clients begin at an agent server are adopted, and those that were deleted stay deleted. Messages
 * wait for conversations that are not ready yet. A sandbox remembers in which generation its user stopped it.
 */
export class AdoptAndQueue1764400000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE sandboxes ADD COLUMN stopped_generation integer`);
    await queryRunner.query(
      `ALTER TABLE app_conversations ADD COLUMN adopted boolean NOT NULL DEFAULT false`,
    );
    await queryRunner.query(`
      CREATE TABLE removed_conversations (
        id uuid NOT NULL,
        sandbox_id text NOT NULL,
        CONSTRAINT removed_conversations_pkey PRIMARY KEY (id),
        CONSTRAINT removed_conversations_sandbox_id_fkey FOREIGN KEY (sandbox_id)
          REFERENCES sandboxes (id) ON DELETE CASCADE)`);
    await queryRunner.query(
      `CREATE INDEX removed_conversations_sandbox_id_idx ON removed_conversations (sandbox_id)`,
    );
    await queryRunner.query(`
      CREATE TABLE pending_messages (
        id uuid NOT NULL,
        user_id uuid NOT NULL,
        conversation_id uuid NOT NULL,
        position integer NOT NULL,
        content jsonb NOT NULL,
        attempts integer NOT NULL DEFAULT 0,
        due_at timestamptz NOT NULL DEFAULT now(),
        after_event_id text,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT pending_messages_pkey PRIMARY KEY (id),
        CONSTRAINT pending_messages_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE)`);
    await queryRunner.query(`
      CREATE UNIQUE INDEX pending_messages_conversation_id_position_key
        ON pending_messages (conversation_id, position)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE pending_messages`);
    await queryRunner.query(`DROP TABLE removed_conversations`);
    await queryRunner.query(`ALTER TABLE app_conversations DROP COLUMN adopted`);
    await queryRunner.query(`ALTER TABLE sandboxes DROP COLUMN stopped_generation`);
  }
}
