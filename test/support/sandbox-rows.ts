import type { DataSource } from 'typeorm';
import { newSandboxId, newSessionKey, sessionKeyHash } from '../../src/v1/sandboxes/session-key.js';
import type { SandboxRowStatus } from '../../src/v1/sandboxes/sandbox-status.js';
import type { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { ConversationRows } from './conversation-rows.js';
import type { TestApp } from './create-test-app.js';

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

/** Inserts the row of a sandbox of the app's user whose agent server and ports are where the test says; its key is whole. */
export async function insertReachableSandbox(
  app: TestApp,
  row: Pick<Sandbox, 'id' | 'address'> & Partial<Pick<Sandbox, 'status' | 'portAddresses'>> & { key: string },
): Promise<void> {
  await new ConversationRows(app).sandbox(app.user.id, { generation: 0, ...row });
}
