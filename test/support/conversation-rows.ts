import { randomUUID } from 'node:crypto';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { AppConversation } from '../../src/v1/app-conversations/conversation.entity.js';
import { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { FollowedConversation } from '../../src/v1/events/followed-conversation.entity.js';
import {
  newSandboxId,
  newSessionKey,
  sessionKeyBinding,
  sessionKeyHash,
} from '../../src/v1/sandboxes/session-key.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import type { TestApp } from './create-test-app.js';
import { sampleStartRequest } from './sample-start-request.js';

/** Keeps followers here from replacing what a test writes of a conversation by the state at the agent server. */
export const FOLLOWED_ELSEWHERE: Partial<FollowedConversation> = {
  follower: randomUUID(),
  followerUntil: new Date('9999-01-01T00:00:00Z'),
};

/** Inserts rows of conversations and of what belongs to them, as if others had made them. */
export class ConversationRows {
  constructor(private readonly app: TestApp) {}

  /** A sandbox that another host looks after, so that no worker here touches it. */
  async sandbox(userId: string, members: Partial<Sandbox> & { key?: string } = {}): Promise<Sandbox> {
    const { key = newSessionKey(), id = newSandboxId(), ...columns } = members;
    const repository = this.app.dataSource.getRepository(Sandbox);
    return repository.save(
      repository.create({
        id,
        userId,
        specId: 'slipway',
        status: 'RUNNING',
        backend: 'process',
        hostId: 'a-host-of-nobody',
        sessionKey: this.app.app.get(SecretCipher).encrypt(key, sessionKeyBinding(id)),
        sessionKeyHash: sessionKeyHash(key),
        generation: 1,
        lastActivityAt: new Date(),
        ...columns,
      }),
    );
  }

  /** A conversation with its log; in a sandbox that does not exist unless one is named. */
  async conversation(
    userId: string,
    members: Partial<AppConversation> = {},
    followed: Partial<FollowedConversation> = {},
  ): Promise<AppConversation & { hex: string }> {
    const conversations = this.app.dataSource.getRepository(AppConversation);
    const sandboxId = members.sandboxId ?? newSandboxId();
    const row = await conversations.save(
      conversations.create({
        id: randomUUID(),
        userId,
        sandboxId,
        workingDir: '/workspace',
        sandboxGeneration: 1,
        ...members,
      }),
    );
    const logs = this.app.dataSource.getRepository(FollowedConversation);
    await logs.save(logs.create({ id: row.id, userId, sandboxId, ...followed }));
    return Object.assign(row, { hex: toHexId(row.id) });
  }

  async startTask(userId: string, members: Partial<StartTask> = {}): Promise<StartTask & { hex: string }> {
    const tasks = this.app.dataSource.getRepository(StartTask);
    const row = await tasks.save(
      tasks.create({
        id: randomUUID(),
        userId,
        status: 'WORKING',
        appConversationId: randomUUID(),
        sandboxId: newSandboxId(),
        hostId: 'a-host-of-nobody',
        request: sampleStartRequest(),
        ...members,
      }),
    );
    return Object.assign(row, { hex: toHexId(row.id) });
  }
}
