import type { DataSource } from 'typeorm';

/** As if nothing had been heard of the workers for a while, and no check had just run (pg-boss checks every 5 s). */
export async function forgetWorkers(dataSource: DataSource): Promise<void> {
  await dataSource.query(
    `UPDATE pgboss.job SET heartbeat_on = heartbeat_on - interval '1 hour' WHERE state = 'active'`,
  );
  await dataSource.query('UPDATE pgboss.queue SET monitor_on = NULL, monitor_claim_on = NULL');
}
