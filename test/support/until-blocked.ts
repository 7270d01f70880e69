import type { DataSource } from 'typeorm';
import { until } from './until.js';

/** Waits until so many statements in this database wait for a lock; the test's own timeout bounds it. */
export async function untilBlocked(dataSource: DataSource, count = 1): Promise<void> {
  await until(async () => {
    const rows = await dataSource.query<unknown[]>(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows.length >= count;
  });
}
