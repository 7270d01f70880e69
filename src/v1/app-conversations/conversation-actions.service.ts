import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { parseHexId } from '../../common/hex-id.js';
import { AgentServerError } from '../agent-servers/agent-server.error.js';
import { ConversationPokes } from '../events/conversation-pokes.js';
import { type RunningSandbox, RunningSandboxes } from '../sandboxes/running-sandboxes.js';
import { SandboxActivity } from '../sandboxes/sandbox-activity.js';
import { toWireStatus } from '../sandboxes/sandbox-status.js';
import { agentServerProblem } from './agent-server-problem.js';
import { ConversationRenewal } from './conversation-renewal.js';
import type { ConversationRow } from './conversation-row.js';
import { ConversationsReader } from './conversations.reader.js';
import { sandboxNotRunning } from './sandbox-not-running.js';
import { StartTasksReader } from './start-tasks.reader.js';
import { unknownConversation } from './unknown-conversation.js';

/** How long an action waits for a resumed agent server to be given its credentials again; that is tried every 5 s. */
const RESTORE_WAIT_MS = 12_000;
const RESTORE_POLL_MS = 50;

/** What is done at a conversation's agent server. */
export type ConversationAction<T> = (target: RunningSandbox, conversation: ConversationRow) => Promise<T>;

/** Does what users want at the agent servers of their conversations. */
@Injectable()
export class ConversationActionsService {
  constructor(
    private readonly reader: ConversationsReader,
    private readonly startTasks: StartTasksReader,
    private readonly running: RunningSandboxes,
    private readonly activity: SandboxActivity,
    private readonly renewal: ConversationRenewal,
    private readonly pokes: ConversationPokes,
  ) {}

  /**
   * Has the agent of a conversation do something: counts as activity, and its events are looked for at once.
   *
   * @throws DomainError not_found, what `sandboxNotRunning` says, and what `agentServerProblem` makes of a refusal
   */
  async act(userId: string, givenId: string, action: ConversationAction<void>): Promise<void> {
    await this.do(userId, givenId, (target, conversation) =>
      this.renewal.renewed(target, conversation, () => action(target, conversation)),
    );
  }

  /** As `act`, for what ends work: it waits for no settings, and fails for none. */
  async stop(userId: string, givenId: string, action: ConversationAction<void>): Promise<void> {
    await this.do(userId, givenId, action);
  }

  private async do(userId: string, givenId: string, action: ConversationAction<void>): Promise<void> {
    const { conversation, target } = await this.open(userId, givenId);
    this.activity.touch(conversation.sandbox_id);
    await this.restored(userId, conversation, target);
    await attempt(() => action(target, conversation));
    this.pokes.poke(conversation.id);
  }

  /** Reads something there: no activity. Throws like `act`. */
  async look<T>(userId: string, givenId: string, action: ConversationAction<T>): Promise<T> {
    const { conversation, target } = await this.open(userId, givenId);
    return attempt(() => action(target, conversation));
  }

  private async open(
    userId: string,
    givenId: string,
  ): Promise<{ conversation: ConversationRow; target: RunningSandbox }> {
    const id = parseHexId(givenId);
    const conversation = id === null ? null : await this.reader.find(userId, id);
    if (conversation === null) {
      throw id !== null && (await this.isStarting(userId, id))
        ? sandboxNotRunning('STARTING', '')
        : unknownConversation();
    }
    const status = toWireStatus(conversation.sandbox_status);
    if (status !== 'RUNNING') {
      throw sandboxNotRunning(status, conversation.sandbox_id);
    }
    const target = await this.running.target(conversation.sandbox_id);
    if (target === null) {
      // It has just been stopped.
      throw sandboxNotRunning('PAUSED', conversation.sandbox_id);
    }
    return { conversation, target };
  }

  /** A client that chose the id may be here before the conversation is. */
  private async isStarting(userId: string, id: string): Promise<boolean> {
    const { items } = await this.startTasks.search(
      userId,
      { conversationId: id },
      { order: 'CREATED_AT_DESC', limit: 1 },
    );
    return items.some(({ status }) => status !== 'READY' && status !== 'ERROR');
  }

  /**
   * An agent server that was resumed a moment ago waits for its keys, and refuses work until it has them. When they do
   * not come, it says so itself.
   */
  private async restored(
    userId: string,
    conversation: ConversationRow,
    target: RunningSandbox,
  ): Promise<void> {
    let generation = conversation.sandbox_generation;
    for (
      let waited = 0;
      generation < target.generation && waited < RESTORE_WAIT_MS;
      waited += RESTORE_POLL_MS
    ) {
      await wait(RESTORE_POLL_MS);
      const row = await this.reader.find(userId, conversation.id);
      generation = row === null ? Infinity : row.sandbox_generation;
    }
  }
}

async function attempt<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw error instanceof AgentServerError ? agentServerProblem(error) : error;
  }
}
