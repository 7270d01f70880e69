import type { DataSource } from 'typeorm';
import { newSandboxId, newSessionKey, sessionKeyHash } from '../../src/v1/sandboxes/sandbox-session-key.js';
import type { SandboxRowStatus } from '../../src/v1/sandboxes/sandbox-status.js';

/** A sandbox of which there is nothing but its row. */
export interface SandboxRowHandle {
  id: string;
  key: string;
  headers: { 'X-Session-API-Key': string };
}

/**
 * Inserts the row of a sandbox that another host looks after, so that nothing here touches it. Its encrypted key is none:
 * it can be presented, not read.
 */
export async function insertSandboxRow(
  dataSource: DataSource,
  userId: string,
  status: SandboxRowStatus = 'RUNNING',
): Promise<SandboxRowHandle> {
  const id = newSandboxId();
  const key = newSessionKey();
  await dataSource.query(
    `INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, last_activity_at)
     VALUES ($1, $2, 'default', $3, 'process', 'a-host-of-nobody', '', $4, now())`,
    [id, userId, status, sessionKeyHash(key)],
  );
  return { id, key, headers: { 'X-Session-API-Key': key } };
}
