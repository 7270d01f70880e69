import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from '../concurrent-indexes.js';

const INDEXES = [
  {
    name: 'app_conversations_tags_idx',
    on: 'app_conversations USING gin (tags jsonb_path_ops)',
  },
  {
    name: 'webhook_deliveries_status_idx',
    on: 'webhook_deliveries (endpoint_id, status, created_at, id)',
  },
];

/** A tag or a status that few rows have is found without reading all the others. */
export class IndexTagsAndDeliveries1765700000000 implements MigrationInterface {
  /** Outside of a transaction PostgreSQL builds an index while others write. */
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    await buildIndexes(queryRunner, INDEXES);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await dropIndexes(queryRunner, INDEXES);
  }
}
