import type { MigrationInterface, QueryRunner } from 'typeorm';

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

/** A backup holds it up for as long; something that hangs shall not. */
const MAX_WAIT_MS = 600_000;

/** A tag or a status that few rows have is found without reading all the others. */
export class IndexTagsAndDeliveries1765700000000 implements MigrationInterface {
  /** Outside of a transaction PostgreSQL builds an index while others write. */
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('SET statement_timeout = 0');
    await queryRunner.query(`SET lock_timeout = ${MAX_WAIT_MS}`);
    try {
      for (const { name, on } of INDEXES) {
        // What a build that was broken off has left is no index, but has the name.
        await queryRunner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
        await queryRunner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
      }
    } finally {
      await queryRunner.query('RESET lock_timeout');
      await queryRunner.query('RESET statement_timeout');
    }
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) {
      await queryRunner.query(`DROP INDEX IF EXISTS ${name}`);
    }
  }
}
