import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { AuditAction } from '../../audit/audit-action.js';
import type { AuditDetails } from '../../audit/audit.repository.js';
import { DomainError, type ErrorCode } from '../../common/errors/domain-error.js';
import { parseHexId, toHexId } from '@slipway/common/identifiers.js';
import { AgentServerError, ResponseTooLargeError } from '@slipway/agent-client/agent-server.http.js';
import { unknownConversation } from '../events/events.service.js';
import { SyncRequests } from '../events/log-sync/sync-requests.js';
import { type RunningSandbox, RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import { type SandboxRowStatus, type SandboxStatus, toWireStatus } from '../sandboxes/sandbox-status.js';
import type { ServiceCause } from '../sandboxes/sandbox.repository.js';
import { SandboxesService } from '../sandboxes/sandboxes.service.js';
import { ConversationQueries } from './conversation.queries.js';
import type { ConversationRow } from './conversation-row.js';
import { ConversationRepository } from './conversation.repository.js';
import { StartTaskQueries } from './start-task.queries.js';

/** How long an action waits for a restarted agent server's credentials, which are tried every 5 s. */
const RESUME_WAIT_MS = 12_000;
const RESUME_POLL_MS = 50;
/** Statuses of sandboxes that are started again for a caller who wants to go on. */
const STOPPED: Partial<Record<SandboxRowStatus, NonNullable<WokenFrom>>> = {
  PAUSED: 'PAUSED',
  PAUSING: 'PAUSED',
  ERROR: 'ERROR',
};

export interface AuditedAction {
  action: AuditAction & `conversation.${string}`;
  details?: AuditDetails;
}

/** What a sandbox was before it was woken; null: nothing had to be done. */
export type WokenFrom = 'PAUSED' | 'ERROR' | null;

export type ConversationAction<T> = (target: RunningSandbox, conversation: ConversationRow) => Promise<T>;

/**
 * Works with the agent servers of conversations whose sandboxes run. All methods throw DomainError: not_found, and as
 * `sandboxNotRunning` and `agentServerProblem` say.
 */
@Injectable()
export class RunningConversations {
  constructor(
    private readonly conversations: ConversationQueries,
    private readonly repository: ConversationRepository,
    private readonly startTasks: StartTaskQueries,
    private readonly running: RunningSandboxQueries,
    private readonly sandboxes: SandboxesService,
    private readonly syncRequests: SyncRequests,
  ) {}

  /** Does not count as activity. */
  async read<T>(userId: string, givenId: string, action: ConversationAction<T>): Promise<T> {
    const { conversation, target } = await this.open(userId, givenId);
    return translateErrors(() => action(target, conversation));
  }

  /** Resumes a sandbox that is paused or has failed, and waits for it. Throws as `SandboxesService.wake`. */
  async wake(userId: string, givenId: string, what: string, cause?: ServiceCause): Promise<WokenFrom> {
    const id = parseHexId(givenId);
    const conversation = id === null ? null : await this.conversations.find(userId, id);
    const status = conversation?.sandbox_status ?? null;
    const from = (status && STOPPED[status]) ?? null;
    const isWaking = conversation !== null && this.sandboxes.isWaking(conversation.sandbox_id);
    if (conversation === null || !(from !== null || isWaking)) {
      return null;
    }
    await this.sandboxes.wake(userId, conversation.sandbox_id, what, cause);
    return from ?? 'PAUSED';
  }

  /**
   * Runs a change that makes the agent do nothing, or needs no credentials. Counts as activity, and requests a sync. The
   * agent server is outside our transactions, so the audit entry is committed before the request, and a second one if it
   * fails.
   */
  async change(
    userId: string,
    givenId: string,
    entry: AuditedAction | null,
    action: ConversationAction<void>,
  ): Promise<void> {
    const { conversation, target } = await this.open(userId, givenId);
    this.sandboxes.touch(conversation.sandbox_id);
    await this.untilResumed(userId, conversation, target);
    await this.note(userId, conversation.id, entry, 'requested');
    try {
      await translateErrors(() => action(target, conversation));
    } catch (error) {
      await this.note(userId, conversation.id, entry, 'failed');
      throw error;
    }
    this.syncRequests.requestSync(conversation.id);
  }

  private async note(
    userId: string,
    id: string,
    entry: AuditedAction | null,
    outcome: 'requested' | 'failed',
  ): Promise<void> {
    if (entry !== null) {
      await this.repository.noteAction({ ...entry, outcome, resourceId: toHexId(id), ownerId: userId });
    }
  }

  private async open(
    userId: string,
    givenId: string,
  ): Promise<{ conversation: ConversationRow; target: RunningSandbox }> {
    const id = parseHexId(givenId);
    const conversation = id === null ? null : await this.conversations.find(userId, id);
    if (conversation === null) {
      throw id !== null && (await this.startTasks.isStarting(userId, id))
        ? sandboxNotRunning('STARTING', '')
        : unknownConversation();
    }
    const { sandbox_status: given, address } = conversation;
    // Nothing begins in a sandbox that is about to be stopped.
    const status = given === 'PAUSING' ? 'PAUSED' : toWireStatus(given, address);
    if (status !== 'RUNNING') {
      throw sandboxNotRunning(status, conversation.sandbox_id);
    }
    const target = await this.running.target(conversation.sandbox_id);
    if (target === null) {
      // It was stopped between the two reads.
      throw sandboxNotRunning('PAUSED', conversation.sandbox_id);
    }
    return { conversation, target };
  }

  /**
   * Waits until a restarted agent server has the conversation's credentials. After a timeout, the action goes ahead,
   * so that the agent server's own refusal is returned.
   */
  private async untilResumed(
    userId: string,
    conversation: ConversationRow,
    target: RunningSandbox,
  ): Promise<void> {
    let generation = conversation.sandbox_generation;
    for (
      let waited = 0;
      generation < target.generation && waited < RESUME_WAIT_MS;
      waited += RESUME_POLL_MS
    ) {
      await wait(RESUME_POLL_MS);
      const row = await this.conversations.find(userId, conversation.id);
      generation = row === null ? Infinity : row.sandbox_generation;
    }
  }
}

/** Says why the sandbox does not run, and what to do about it. */
export function sandboxNotRunning(status: Exclude<SandboxStatus, 'RUNNING'>, sandboxId: string): DomainError {
  const resume = `POST /api/v1/sandboxes/${sandboxId}/resume`;
  const { kind, detail } = (
    {
      PAUSED: { kind: 'conflict', detail: `The sandbox is PAUSED; resume it first with ${resume}.` },
      STARTING: { kind: 'conflict', detail: 'The sandbox is STARTING; try again once it is RUNNING.' },
      ERROR: {
        kind: 'unavailable',
        detail: `The sandbox is in ERROR (its status_detail says why); a message starts it again, and so does ${resume}.`,
      },
      MISSING: {
        kind: 'gone',
        detail: 'The sandbox is MISSING: the conversation can be read, but not continued.',
      },
    } as const
  )[status];
  return new DomainError('sandbox_not_running', detail, { kind });
}

async function translateErrors<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw error instanceof AgentServerError ? agentServerProblem(error) : error;
  }
}

/** Refusals because of the conversation's state. */
const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  400: 'conflict',
  403: 'forbidden',
  409: 'conflict',
  422: 'conflict',
};

/** A refusal keeps the agent server's own words; every other failure is a bad gateway. */
function agentServerProblem(error: AgentServerError): DomainError {
  const refusal = error.status === null ? undefined : REFUSALS[error.status];
  if (refusal) {
    return new DomainError(refusal, error.detail, { cause: error });
  }
  if (error instanceof ResponseTooLargeError) {
    return new DomainError(
      'upstream_error',
      `The agent server of the sandbox sent ${error.excess}; ask for less, such as a folder further down.`,
      { cause: error },
    );
  }
  return error.status === null
    ? agentServerSilent(error)
    : new DomainError(
        'upstream_error',
        `The agent server of the sandbox refused the request (${error.status}): ${error.detail}`,
        { cause: error },
      );
}

export function agentServerSilent(cause?: AgentServerError): DomainError {
  const detail = 'The agent server of the sandbox did not answer; try again.';
  return new DomainError('upstream_error', detail, { cause });
}
