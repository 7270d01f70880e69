import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { stopPostmaster } from './postmaster.js';
import { LEASE_NAME, probe, type EmbeddedConnection } from './probe.js';

/** How long connections that were just closed may take to disappear from the server's list. */
const GRACE_MS = 2_000;

/**
 * Ends our use of the cluster's server and stops it, unless somebody else is connected or it cannot be seen from here;
 * one line tells of that. Only call it while holding the start lock.
 *
 * @param lease the connection that was held while we used it
 * @throws EmbeddedPostgresError when the server does not stop in time
 */
export async function releasePostmaster(
  lease: Client,
  connection: EmbeddedConnection,
  cluster: string,
  onNotice: (line: string) => void,
): Promise<void> {
  const client = await liveConnection(lease, connection);
  if (client === null) {
    return; // The server is gone already.
  }
  try {
    if (await isUsedByOthers(client)) {
      onNotice('PostgreSQL keeps running: other programs are connected to it');
      return;
    }
  } finally {
    await client.end();
  }
  if (!(await stopPostmaster(cluster))) {
    onNotice('PostgreSQL keeps running: it does not belong to this machine or container');
  }
}

/** The connection if it still works, else a new one; null when there is no server any more. */
async function liveConnection(lease: Client, connection: EmbeddedConnection): Promise<Client | null> {
  try {
    await lease.query('select 1');
    return lease;
  } catch {
    // The server went down at some point; it may have come back by itself.
    const found = await probe(connection);
    return found.state === 'connected' ? found.client : null;
  }
}

async function isUsedByOthers(client: Client): Promise<boolean> {
  const deadline = Date.now() + GRACE_MS;
  for (;;) {
    const { rows } = await client.query<{ leases: number; others: number }>(
      `select count(*) filter (where application_name = $1)::int as leases, count(*)::int as others
         from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
      [LEASE_NAME],
    );
    const { leases, others } = rows[0] ?? { leases: 0, others: 0 };
    if (others === 0 || leases > 0 || Date.now() > deadline) {
      return others > 0;
    }
    await delay(10);
  }
}
