import type { MigrationInterface, QueryRunner } from 'typeorm';
import { isDatabaseAway } from '../../common/errors/database-failure.js';
import { buildIndexes, dropIndexes } from '../concurrent-indexes.js';

const INDEXES = [
  {
    name: 'app_conversations_user_id_updated_at_idx',
    on: 'app_conversations (user_id, updated_at)',
  },
  {
    name: 'app_conversation_start_tasks_user_id_updated_at_idx',
    on: 'app_conversation_start_tasks (user_id, updated_at, id)',
  },
  {
    name: 'app_conversation_start_tasks_updated_at_idx',
    // One that has an order would tempt a listing of a user's tasks to walk through everybody's.
    on: 'app_conversation_start_tasks USING brin (updated_at) WITH (autosummarize = on)',
  },
  {
    name: 'followed_conversations_user_id_idx',
    on: 'followed_conversations (user_id)',
  },
  {
    name: 'sandboxes_status_backend_idx',
    on: 'sandboxes (status, backend)',
  },
  {
    name: 'sandboxes_stopped_idx',
    on: `sandboxes (host_id, updated_at) WHERE status IN ('PAUSED', 'ERROR', 'MISSING')`,
  },
  {
    name: 'users_administrators_idx',
    on: 'users (id) WHERE is_admin',
  },
];

const TITLES = {
  name: 'app_conversations_title_idx',
  on: 'app_conversations USING gin (title gin_trgm_ops)',
};

/**
 * What users list, what the service looks for again and again, and what goes with a user is found without reading the whole
 * table (docs/adr/0050).
 */
export class IndexWhatGrows1766100000000 implements MigrationInterface {
  /** Outside of a transaction PostgreSQL builds an index while others write. */
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    await buildIndexes(queryRunner, INDEXES);
    if (await hasTrigrams(queryRunner)) {
      await buildIndexes(queryRunner, [TITLES]);
    }
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await dropIndexes(queryRunner, [TITLES, ...INDEXES]);
  }
}

/**
 * PostgreSQL's own packages have pg_trgm, and whoever may make tables in a database may create it, unless a provider says
 * otherwise. Without it titles are compared one by one.
 */
async function hasTrigrams(queryRunner: QueryRunner): Promise<boolean> {
  try {
    await queryRunner.query('CREATE EXTENSION IF NOT EXISTS pg_trgm');
    return true;
  } catch (error) {
    if (isDatabaseAway(error)) {
      throw error;
    }
    return false;
  }
}
