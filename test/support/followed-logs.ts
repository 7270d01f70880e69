import { randomUUID } from 'node:crypto';
import { SecretCipher } from '../../src/common/crypto/secret-cipher.js';
import { FollowedConversationRepository } from '../../src/v1/events/followed-conversation.repository.js';
import { newSandboxId, sessionKeyBinding, sessionKeyHash } from '../../src/v1/sandboxes/session-key.js';
import type { TestApp } from './create-test-app.js';

/** Writes a sandbox that runs already, looked after by no host of the test, and answers its id. */
export async function insertRunningSandbox(
  { app, dataSource }: TestApp,
  userId: string,
  { address, key }: { address: string; key: string },
): Promise<string> {
  const id = newSandboxId();
  await dataSource.query(
    `INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, address,
       generation, last_activity_at)
     VALUES ($1, $2, 'slipway', 'RUNNING', 'process', 'a-host-of-nobody', $3, $4, $5, 1, now())`,
    [id, userId, app.get(SecretCipher).encrypt(key, sessionKeyBinding(id)), sessionKeyHash(key), address],
  );
  return id;
}

/** Opens the log of a conversation in a sandbox, and answers its id. */
export async function openLog(
  { app, dataSource }: TestApp,
  userId: string,
  sandboxId: string,
  conversationId: string = randomUUID(),
): Promise<string> {
  await dataSource.transaction((manager) =>
    app
      .get(FollowedConversationRepository, { strict: false })
      .open(manager, { conversationId, userId, sandboxId }),
  );
  return conversationId;
}
