import { Injectable } from '@nestjs/common';
import { hasFailed, type SendMessageRequest } from '@slipway/agent-protocol/conversation-api.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { FollowedConversationRepository } from '../events/followed-conversation.repository.js';
import { SyncRequests } from '../events/log-sync/sync-requests.js';
import { SandboxesService } from '../sandboxes/sandboxes.service.js';
import { ConversationQueries } from './conversation.queries.js';
import { CredentialRefreshService } from './credential-refresh.service.js';
import {
  type AuditedAction,
  type ConversationAction,
  RunningConversations,
  type WokenFrom,
} from './running-conversations.js';
import { StartTaskQueries } from './start-task.queries.js';

const WORKING: readonly unknown[] = ['idle', 'running', 'waiting_for_confirmation'];

/** What people and agents tell the agent of a conversation. All methods throw DomainError as `RunningConversations` does. */
@Injectable()
export class ConversationActionsService {
  constructor(
    private readonly running: RunningConversations,
    private readonly conversations: ConversationQueries,
    private readonly startTasks: StartTaskQueries,
    private readonly sandboxes: SandboxesService,
    private readonly credentials: CredentialRefreshService,
    private readonly syncRequests: SyncRequests,
    private readonly agentServers: AgentServerClient,
    private readonly logs: FollowedConversationRepository,
  ) {}

  /** Resumes a paused sandbox, or one that has failed, if `resume` is set. */
  async sendMessage(
    userId: string,
    givenId: string,
    message: SendMessageRequest,
    resume: boolean,
  ): Promise<WokenFrom> {
    const woken = resume ? await this.running.wake(userId, givenId, 'a message') : null;
    // Not audited: the conversation's log has the messages with their sources.
    await this.act(userId, givenId, null, async (target, { id, execution_status: before }) => {
      await this.logs.requireRoom(userId, id);
      // One that works reads it with its next step.
      if (message.run !== true && before !== 'running') {
        await this.logs.addUnread(id, message.content);
      }
      const isOver = before === 'finished' || hasFailed(before);
      const status = message.run === true ? 'running' : isOver ? 'idle' : null;
      return this.syncRequests.expecting(id, status, () =>
        this.agentServers.sendMessage(target, id, this.credentials.dialectOf(target).message(message)),
      );
    });
    return woken;
  }

  /** Allows or refuses what the agent waits for. */
  async respondToConfirmation(
    userId: string,
    givenId: string,
    response: { accept: boolean; reason?: string },
  ): Promise<void> {
    const entry: AuditedAction = { action: 'conversation.respond', details: { accepted: response.accept } };
    await this.act(userId, givenId, entry, (target, { id }) =>
      this.syncRequests.expecting(id, response.accept ? 'running' : null, () =>
        this.agentServers.respondToConfirmation(target, id, response),
      ),
    );
  }

  async run(userId: string, givenId: string): Promise<void> {
    const entry: AuditedAction = { action: 'conversation.run' };
    await this.act(userId, givenId, entry, (target, { id }) =>
      this.syncRequests.expecting(id, 'running', () => this.agentServers.run(target, id)),
    );
  }

  async pause(userId: string, givenId: string): Promise<void> {
    const entry: AuditedAction = { action: 'conversation.pause' };
    await this.running.change(userId, givenId, entry, (target, { id }) =>
      this.agentServers.pause(target, id),
    );
  }

  /** Pauses the agent if it works; false while its start is under way. */
  async stop(userId: string, id: string): Promise<boolean> {
    if (await this.startTasks.isStarting(userId, id)) {
      return false;
    }
    const row = await this.conversations.find(userId, id);
    if (row?.sandbox_status === 'RUNNING' && WORKING.includes(row.execution_status)) {
      await this.pause(userId, id).catch((error: unknown) => {
        // It ended in this moment, or its sandbox did.
        if (!(error instanceof DomainError && ['not_found', 'conflict'].includes(error.kind))) {
          throw error;
        }
      });
    }
    return true;
  }

  /** Pauses the agent, and the sandbox with all that is in it. @throws DomainError not_found, conflict where it does not run */
  async stopWithSandbox(userId: string, givenId: string): Promise<void> {
    const {
      id,
      sandbox_id: sandboxId,
      sandbox_status: status,
    } = await this.conversations.get(userId, givenId);
    if (status !== 'RUNNING') {
      throw notRunning();
    }
    await this.stop(userId, id);
    await this.sandboxes.pause(userId, sandboxId);
  }

  private async act(
    userId: string,
    givenId: string,
    entry: AuditedAction | null,
    action: ConversationAction<void>,
  ): Promise<void> {
    await this.running.change(userId, givenId, entry, (target, conversation) =>
      this.credentials.runWithRefresh(target, conversation, () => action(target, conversation)),
    );
  }
}

export function notRunning(): DomainError {
  return new DomainError('conflict', 'The conversation is not running.');
}
