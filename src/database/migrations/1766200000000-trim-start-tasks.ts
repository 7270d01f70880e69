import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from '../concurrent-indexes.js';

const INDEXES = [
  {
    name: 'app_conversation_start_tasks_kept_idx',
    on: 'app_conversation_start_tasks (user_id, updated_at, id) WHERE NOT trimmed',
  },
  {
    name: 'pending_messages_user_id_idx',
    on: 'pending_messages (user_id)',
  },
];

/**
 * Of the ended starts of a user the newest are kept; older ones of conversations are reduced, and not shown any more. Earlier
 * versions show them without their texts. The messages that wait for conversations of a user are counted.
 */
export class TrimStartTasks1766200000000 implements MigrationInterface {
  /** Outside of a transaction PostgreSQL builds an index while others write. */
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'ALTER TABLE app_conversation_start_tasks ADD COLUMN IF NOT EXISTS trimmed boolean NOT NULL DEFAULT false',
    );
    await buildIndexes(queryRunner, INDEXES);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await dropIndexes(queryRunner, INDEXES);
    await queryRunner.query('ALTER TABLE app_conversation_start_tasks DROP COLUMN trimmed');
  }
}
