import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DomainError, type ErrorCode, type ErrorKind } from '../../common/errors/domain-error.js';
import { parseHexId } from '../../common/identifiers.js';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import { AgentServerError } from '../agent-servers/agent-server.http.js';
import { SyncRequests } from '../events/conversation-logs.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { SandboxActivity } from '../sandboxes/sandbox-activity.queries.js';
import { type SandboxStatus, toWireStatus } from '../sandboxes/sandbox.entity.js';
import { type RunningSandbox, RunningSandboxes } from '../sandboxes/sandbox.queries.js';
import { AgentCredentials } from './agent-request/agent-credentials.js';
import { agentDialect } from './agent-request/agent-settings.js';
import { type ConversationRow, ConversationQueries } from './conversation.repository.js';
import { unknownConversation } from './conversations.service.js';
import { StartTaskQueries } from './start-task.repository.js';

/** What our agent server answers while a conversation lacks its key; nothing was done then. */
const REFUSED = 400;

/**
 * Gives conversations of running sandboxes the settings as they are now where something is in their way that the user
 * may have changed: a limit that was reached, a key. All others are asked without a word more.
 */
@Injectable()
export class CredentialRefresh {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly agentServers: AgentServerClient,
    private readonly credentials: AgentCredentials,
  ) {}

  /**
   * Does something at the conversation's agent server, which has the present settings where they matter.
   *
   * @param action is done again when it was refused before the settings were told
   * @throws AgentServerError, and SecretDecryptionError when something stored is not readable with the configured keys
   */
  async renewed(
    target: RunningSandbox,
    conversation: ConversationRow,
    action: () => Promise<void>,
  ): Promise<void> {
    if (needsCredentialRefresh(conversation)) {
      await this.refresh(target, conversation);
      await action();
      return;
    }
    try {
      await action();
    } catch (error) {
      const isRefusal = error instanceof AgentServerError && error.status === REFUSED;
      if (!isRefusal || !(await this.refresh(target, conversation))) {
        throw error;
      }
      await action();
    }
  }

  /** @returns whether there was anything to tell: the stock server has no route for it, and keeps what it was given */
  private async refresh(
    target: RunningSandbox,
    { id, user_id: userId }: Pick<ConversationRow, 'id' | 'user_id'>,
  ): Promise<boolean> {
    if (agentDialect(this.specs.find(target.specId)) !== 'slipway') {
      return false;
    }
    const remote = await this.agentServers.findConversation(target, id);
    if (remote === null) {
      // The action itself says so.
      return false;
    }
    const credentials = await this.credentials.build({ id, userId }, remote.model);
    await this.agentServers.giveCredentials(target, id, credentials);
    return true;
  }
}

/** How long an action waits for a resumed agent server to be given its credentials again; that is tried every 5 s. */
const RESTORE_WAIT_MS = 12_000;
const RESTORE_POLL_MS = 50;

/** What is done at a conversation's agent server. */
type ConversationAction<T> = (target: RunningSandbox, conversation: ConversationRow) => Promise<T>;

/** Does what users want at the agent servers of their conversations. */
@Injectable()
export class ConversationActionsService {
  constructor(
    private readonly reader: ConversationQueries,
    private readonly startTasks: StartTaskQueries,
    private readonly running: RunningSandboxes,
    private readonly activity: SandboxActivity,
    private readonly renewal: CredentialRefresh,
    private readonly pokes: SyncRequests,
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
    this.pokes.requestSync(conversation.id);
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

/** Refusals that are about what was asked, not about the agent server. */
const KINDS: Readonly<Record<number, [ErrorKind, ErrorCode]>> = {
  400: ['conflict', 'conflict'],
  403: ['forbidden', 'forbidden'],
  409: ['conflict', 'conflict'],
  422: ['conflict', 'conflict'],
};

/**
 * An agent server's failure as a problem: what it refuses because of the conversation's state keeps its own words,
 * everything else is the agent server's fault.
 */
function agentServerProblem(error: AgentServerError): DomainError {
  const known = error.status === null ? undefined : KINDS[error.status];
  if (known) {
    return new DomainError(...known, error.detail, { cause: error });
  }
  return new DomainError(
    'bad_gateway',
    'upstream_error',
    error.status === null
      ? 'The agent server of the sandbox did not answer; try again.'
      : `The agent server of the sandbox refused the request (${error.status}): ${error.detail}`,
    { cause: error },
  );
}

/**
 * Whether a conversation has to be given the user's settings anew before its agent is asked for anything: it ended with
 * an error, or has spent its budget. A key or a limit may be to blame that is another one by now.
 */
export function needsCredentialRefresh({
  execution_status: status,
  metrics,
}: Pick<ConversationRow, 'execution_status' | 'metrics'>): boolean {
  const isSpent =
    metrics !== null &&
    metrics.max_budget_per_task !== null &&
    metrics.accumulated_cost >= metrics.max_budget_per_task;
  return status === 'error' || isSpent;
}

/** Why nothing can be done in a sandbox that does not run, and what to do about it. */
function sandboxNotRunning(status: Exclude<SandboxStatus, 'RUNNING'>, sandboxId: string): DomainError {
  const resume = `POST /api/v1/sandboxes/${sandboxId}/resume`;
  switch (status) {
    case 'PAUSED':
      return new DomainError(
        'conflict',
        'sandbox_not_running',
        `The sandbox is PAUSED; resume it first with ${resume}.`,
      );
    case 'STARTING':
      return new DomainError(
        'conflict',
        'sandbox_not_running',
        'The sandbox is STARTING; try again once it is RUNNING.',
      );
    case 'ERROR':
      return new DomainError(
        'unavailable',
        'sandbox_not_running',
        `The sandbox is in ERROR (its status_detail says why); start it again with ${resume}.`,
      );
    case 'MISSING':
      return new DomainError(
        'gone',
        'sandbox_not_running',
        'The sandbox is MISSING: the conversation can be read, but not continued.',
      );
  }
}
