import { randomUUID } from 'node:crypto';
import {
  newSandboxId,
  newSessionKey,
  sessionKeyBinding,
  sessionKeyHash,
} from '../../src/v1/sandboxes/session-key.js';
import { ABSENT_HOST, type SandboxService } from './sandbox-service.js';

/** Puts sandboxes of the reading user into the database, all RUNNING: each has a key to be decrypted. Returns their ids. */
export async function insertSandboxes(
  { database, cipher, readerId }: SandboxService,
  count: number,
): Promise<string[]> {
  const ids = Array.from({ length: count }, newSandboxId);
  for (const id of ids) {
    const key = newSessionKey();
    await database.query(
      `INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, address,
         port_addresses, generation, last_activity_at)
       VALUES ($1, $2, 'slipway', 'RUNNING', 'process', $3, $4, $5, 'http://127.0.0.1:1',
         '{"generation":1,"addresses":{"WORKER_1":"http://127.0.0.1:2","WORKER_2":"http://127.0.0.1:3"}}', 1, now())`,
      [id, readerId, ABSENT_HOST, cipher.encrypt(key, sessionKeyBinding(id)), sessionKeyHash(key)],
    );
  }
  return ids;
}

/**
 * Puts conversations of the reading user into the database, spread over its sandboxes. Another process follows them, or
 * the service would be kept busy by trying to reach agent servers that are not there.
 */
export async function insertConversations(
  { database, readerId }: SandboxService,
  sandboxIds: readonly string[],
  count: number,
): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    const sandboxId = sandboxIds[index % sandboxIds.length];
    await database.query(
      `INSERT INTO app_conversations (id, user_id, sandbox_id, selected_repository, selected_branch, git_provider, title,
         llm_model, working_dir, sandbox_generation, created_at)
       VALUES ($1, $2, $3, 'bench/app', 'main', 'github', $4, 'openai/large-model', '/workspace/app', 1,
         now() - $5 * interval '1 minute')`,
      [id, readerId, sandboxId, `Conversation number ${index}`, index],
    );
    await database.query(
      `INSERT INTO followed_conversations (id, user_id, sandbox_id, execution_status, follower, follower_until)
       VALUES ($1, $2, $3, 'finished', $4, now() + interval '1 day')`,
      [id, readerId, sandboxId, randomUUID()],
    );
  }
  await database.query('ANALYZE app_conversations, followed_conversations, sandboxes');
}
