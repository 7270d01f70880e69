import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { parseHexId, toHexId } from '@slipway/common/identifiers.js';
import { Draining } from '../health/readiness.js';
import { sandboxNotRunning } from '../v1/app-conversations/running-conversations.js';
import { ConversationQueries } from '../v1/app-conversations/conversation.queries.js';
import type { ConversationRow } from '../v1/app-conversations/conversation-row.js';
import { isFinished } from '../v1/app-conversations/start-task.entity.js';
import { StartTaskQueries } from '../v1/app-conversations/start-task.queries.js';
import { EventsService, unknownConversation } from '../v1/events/events.service.js';
import { toWireStatus } from '../v1/sandboxes/sandbox-status.js';
import type { Outcome, Progress } from './tools.schema.js';

export interface ToolCaller {
  userId: string;
  /** The conversation whose agent calls; null for other clients. */
  conversationId: string | null;
  idempotencyKey: string | null;
  /** Ends when the answer is not wanted any more. */
  signal: AbortSignal;
}

const POLL_MS = 500;

/** Reads how far a conversation is, from the request for its start on. Throws DomainError not_found. */
@Injectable()
export class ConversationProgress {
  constructor(
    private readonly conversations: ConversationQueries,
    private readonly starts: StartTaskQueries,
    private readonly events: EventsService,
    private readonly draining: Draining,
  ) {}

  /** Waits for the agent to stop working, as long as the answer is wanted, and the service does not stop. */
  async wait({ userId, signal }: ToolCaller, givenId: string, seconds: number): Promise<Progress> {
    const until = performance.now() + seconds * 1000;
    for (;;) {
      const progress = await this.read(userId, givenId);
      const left = until - performance.now();
      if (!progress.is_working || left <= 0 || signal.aborted || this.draining.hasBegun) {
        return progress;
      }
      await pause(Math.min(POLL_MS, left));
    }
  }

  async read(userId: string, givenId: string): Promise<Progress> {
    return (await this.both(userId, givenId)).progress;
  }

  async outcome({ userId }: ToolCaller, givenId: string): Promise<Outcome> {
    const { row, progress } = await this.both(userId, givenId);
    return {
      ...progress,
      title: row?.title ?? null,
      answer: row === null ? null : await this.events.lastAnswer(userId, givenId),
      result: row?.result ?? null,
      cost: row?.metrics?.accumulated_cost ?? null,
      repository: row?.selected_repository ?? null,
      branch: row?.working_branch ?? null,
      pull_requests: (row?.pull_requests ?? []).map(({ number, url, title }) => ({ number, url, title })),
    };
  }

  private async both(
    userId: string,
    givenId: string,
  ): Promise<{ row: ConversationRow | null; progress: Progress }> {
    const id = parseHexId(givenId);
    const row = id === null ? null : await this.conversations.find(userId, id);
    return { row, progress: row === null ? await this.ofStart(userId, id) : progressOf(row) };
  }

  private async ofStart(userId: string, id: string | null): Promise<Progress> {
    const task = id && (await this.starts.newest(userId, id));
    if (!task || task.status === 'READY') {
      throw unknownConversation();
    }
    const hasEnded = isFinished(task.status);
    return {
      conversation_id: toHexId(task.app_conversation_id),
      status: hasEnded ? 'start_failed' : 'starting',
      is_working: !hasEnded,
      detail: task.detail,
    };
  }
}

function progressOf(row: ConversationRow): Progress {
  const { id, execution_status: status, error, sandbox_id: sandboxId } = row;
  const sandbox = toWireStatus(row.sandbox_status, row.address);
  const isUp = sandbox === 'RUNNING' || sandbox === 'STARTING';
  // One that has nothing to do yet is about to get its message.
  const isBusy = status === null || status === 'idle' || status === 'running';
  const why = isBusy && !isUp ? sandboxNotRunning(sandbox, sandboxId).message : null;
  return {
    conversation_id: toHexId(id),
    status: status ?? 'starting',
    is_working: isBusy && isUp,
    detail: error === null ? why : `${error.code}: ${error.detail}`,
  };
}
