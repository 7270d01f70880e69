import { createHash, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  type KeyRepositories,
  outsideRepositories,
  providerWithin,
  requireWithin,
} from '../../../auth/key-repositories.js';
import { IdempotencyService, invalidKey } from '../../idempotency/idempotency.service.js';
import { SandboxCreator } from '../../sandboxes/sandbox-creator.js';
import { SandboxWorkerSignal } from '../../sandboxes/sandbox-events.js';
import type { StartConversationDto } from '../api/dto/start-conversation.dto.js';
import type { StartRequest, StartTask } from '../start-task.entity.js';
import { StartTaskQueries, type StartTaskRow } from '../start-task.queries.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { StartAdmission, type StartPlan } from './start-admission.js';
import { StartRequestReader } from './start-request.reader.js';
import { type Starter, StartRequestResolver } from './start-request.resolver.js';

const IDEMPOTENCY_SCOPE = 'app-conversations';

/** Accepts starts; the workflow does the rest. */
@Injectable()
export class ConversationStarter {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly queries: StartTaskQueries,
    private readonly idempotency: IdempotencyService,
    private readonly reader: StartRequestReader,
    private readonly requests: StartRequestResolver,
    private readonly sandboxes: SandboxCreator,
    private readonly worker: SandboxWorkerSignal,
    private readonly admission: StartAdmission,
  ) {}

  /**
   * Returns at once; a repeated `idempotencyKey` returns the first task. Throws InvalidInputError; as `start`, and as
   * `Delegation.grant` for an agent.
   */
  async startFor(
    starter: Starter,
    body: StartConversationDto,
    idempotencyKey: string | null,
    terms: Pick<StartRequest, 'max_budget' | 'started_by_agent' | 'cause' | 'change_request'> = {},
  ): Promise<StartTaskRow> {
    const { id: userId, repositories } = starter;
    const request = { ...withKey(await this.reader.read(userId, body), repositories), ...terms };
    const task = await this.start(starter, request, idempotencyKey);
    // The task of a repeated request may have come far, so the state of its sandbox matters.
    const current = task.status === 'WORKING' ? null : await this.queries.find(userId, task.id);
    return current ?? toRow(task);
  }

  /**
   * Stores task and sandbox, all or nothing. A repeated `idempotencyKey` returns the first task.
   * @throws InvalidInputError for an unknown sandbox, parent or specification, an id in use, or another request under
   *   the key
   * @throws DomainError conflict (`conversation_limit`); storage_full; forbidden for users without sandboxes; outside_repositories; rate_limited, or with
   *   `sandbox_limit` when nothing may wait for quota
   */
  async start(starter: Starter, request: StartRequest, idempotencyKey: string | null): Promise<StartTask> {
    const { id: userId, repositories } = starter;
    const id = randomUUID();
    const planning = this.plan(starter, id, request);
    // Judged in the transaction: a repetition succeeds even if its parent is gone by now.
    await Promise.allSettled([planning]);
    const requestHash = createHash('sha256').update(JSON.stringify(request)).digest();
    let created: StartTask | null = null;
    const task = await this.tasks.transaction(async (manager) => {
      const given = { userId, scope: scopeOf(request), key: idempotencyKey, requestHash };
      const taskId = await this.idempotency.run(manager, given, async () => {
        created = await this.admission.store(manager, await planning);
        return created.id;
      });
      return created ?? (await this.tasks.find(manager, taskId));
    });
    if (!task) {
      // The key's task was deleted with its conversation, or too many are newer.
      throw invalidKey(
        'The conversation that was started under this key has been deleted, or its start is not kept any more; use a new key.',
      );
    }
    requireWithin(repositories, {
      gitProvider: task.request.git_provider,
      selectedRepository: task.request.selected_repository,
    });
    if (created !== null && task.sandboxMade) {
      // The response goes first.
      setImmediate(() => this.worker.wake());
    }
    return task;
  }

  /** Reads what the start needs, and chooses all ids; a warm sandbox has its own. Throws InvalidInputError. */
  private async plan(starter: Starter, id: string, given: StartRequest): Promise<StartPlan> {
    const { id: userId } = starter;
    const { sandboxId, hostId, sandboxExists, isStopped, workingDir, request } = await this.requests.target(
      starter,
      given,
    );
    const checked = sandboxExists ? null : await this.requests.checkSettings(userId, request);
    const known = checked?.configuration.sandbox;
    const sandbox =
      checked && (await this.sandboxes.plan(userId, given.sandbox_spec_id, known, given.egress));
    return {
      task: {
        id,
        userId,
        status: 'WORKING',
        appConversationId: given.conversation_id ?? randomUUID(),
        sandboxId,
        hostId,
        workingDir,
        request,
      },
      sandbox,
      isDoomed: (checked?.problem ?? null) !== null,
      resumes: isStopped,
    };
  }
}

/** No agent takes keys that its user, or another agent, is about to use. */
function scopeOf({ started_by_agent: byAgent, parent_conversation_id: parent }: StartRequest): string {
  return byAgent === true ? `${IDEMPOTENCY_SCOPE} of ${parent}` : IDEMPOTENCY_SCOPE;
}

/** What is started with a key for some repositories; the provider need not be named where the key leaves one. */
function withKey(request: StartRequest, repositories: KeyRepositories): StartRequest {
  if (repositories === null) {
    return request;
  }
  const { git_provider: named, selected_repository: repository, repositories_read: others } = request;
  if (others && others.length > 0) {
    throw outsideRepositories(repositories, 'repositories_read needs a key for all that its user has.');
  }
  const provider = named ?? (repository === null ? null : providerWithin(repositories, repository));
  return { ...request, git_provider: provider, own_repository: true, repositories_read: [] };
}

function toRow(task: StartTask): StartTaskRow {
  return {
    id: task.id,
    user_id: task.userId,
    status: task.status,
    detail: task.detail,
    app_conversation_id: task.appConversationId,
    sandbox_id: task.sandboxId,
    request: task.request,
    notes: task.notes,
    created_at: task.createdAt,
    updated_at: task.updatedAt,
    sandbox_status: null,
    address: null,
    expose_port: null,
    cursor_at: '',
  };
}
