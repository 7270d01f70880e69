import type { QueryRunner } from 'typeorm';

/** An index that a migration builds while others write. */
export interface ConcurrentIndex {
  name: string;
  /** What follows ON: the table, the method and the columns. */
  on: string;
}

/** A backup may block a build for this long; anything that hangs must not block it for longer. */
const MAX_WAIT_MS = 600_000;

/**
 * Builds indexes without keeping writers away. The migration must run outside of a transaction (`transaction = false`); it can
 * be begun again at any point, since a build that was broken off is thrown away first.
 */
export async function buildIndexes(
  queryRunner: QueryRunner,
  indexes: readonly ConcurrentIndex[],
): Promise<void> {
  await queryRunner.query('SET statement_timeout = 0');
  await queryRunner.query(`SET lock_timeout = ${MAX_WAIT_MS}`);
  try {
    for (const { name, on } of indexes) {
      // An interrupted build leaves an invalid index with the same name.
      await queryRunner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await queryRunner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
  } finally {
    await queryRunner.query('RESET lock_timeout');
    await queryRunner.query('RESET statement_timeout');
  }
}

export async function dropIndexes(
  queryRunner: QueryRunner,
  indexes: readonly ConcurrentIndex[],
): Promise<void> {
  for (const { name } of indexes) {
    await queryRunner.query(`DROP INDEX IF EXISTS ${name}`);
  }
}
