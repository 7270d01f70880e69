import { randomUUID } from 'node:crypto';
import { FollowedConversationRepository } from '../../src/v1/events/followed-conversation.repository.js';
import { ConversationRows } from './conversation-rows.js';
import type { TestApp } from './create-test-app.js';

/** Writes a sandbox that runs already, looked after by no host of the test, and answers its id. */
export async function insertRunningSandbox(
  app: TestApp,
  userId: string,
  { address, key }: { address: string; key: string },
): Promise<string> {
  return (await new ConversationRows(app).sandbox(userId, { address, key })).id;
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
