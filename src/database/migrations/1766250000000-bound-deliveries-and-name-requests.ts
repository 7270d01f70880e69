import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from '../concurrent-indexes.js';

const INDEXES = [
  {
    name: 'audit_entries_caller_request_idx',
    on: 'audit_entries (caller_request_id) WHERE caller_request_id IS NOT NULL',
  },
];

/** What was removed for a delivery, and the id that a caller gave to a request beside our own. */
export class BoundDeliveriesAndNameRequests1766250000000 implements MigrationInterface {
  /** Outside of a transaction PostgreSQL builds an index while others write. */
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'ALTER TABLE webhook_deliveries ADD COLUMN IF NOT EXISTS dropped integer NOT NULL DEFAULT 0',
    );
    await queryRunner.query('ALTER TABLE audit_entries ADD COLUMN IF NOT EXISTS caller_request_id text');
    await buildIndexes(queryRunner, INDEXES);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await dropIndexes(queryRunner, INDEXES);
    await queryRunner.query('ALTER TABLE audit_entries DROP COLUMN caller_request_id');
    await queryRunner.query('ALTER TABLE webhook_deliveries DROP COLUMN dropped');
  }
}
