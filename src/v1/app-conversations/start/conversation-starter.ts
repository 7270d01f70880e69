import { createHash, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource, InjectRepository } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Not, Repository } from 'typeorm';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import { DomainError, InvalidInputError } from '../../../common/errors/domain-error.js';
import { IdempotentRequests } from '../../idempotency/idempotent-requests.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { pausedNotes } from '../../sandboxes/sandbox-creation.js';
import { SandboxQuota } from '../../sandboxes/sandbox-quota.js';
import { Sandbox } from '../../sandboxes/sandbox.entity.js';
import { newSandboxId } from '../../sandboxes/session-key.js';
import { AppConversation } from '../conversation.entity.js';
import { type StartRequest, StartTask } from '../start-task.entity.js';
import { insertStartTask, splitSecrets } from '../start-task.repository.js';
import { StartJobs } from './start-queue.js';
import { type SandboxPlan, StartSandboxes } from './start-sandbox.js';

/** Where a conversation is going to be. */
interface StartPlace {
  sandboxId: string;
  /** Who looks after the sandbox. */
  hostId: string;
  /** The sandbox exists; otherwise it is to be made under its id. */
  sandboxMade: boolean;
  /** It exists and is paused: it takes a place when it is resumed. */
  paused: boolean;
  /** Known when it is somebody else's folder. */
  workingDir: string | null;
  /** With what it takes over from its parent. */
  request: StartRequest;
}

/** Finds the sandbox, and the parent, that a request names. */
@Injectable()
export class StartPlaces {
  constructor(
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    @InjectRepository(AppConversation) private readonly conversations: Repository<AppConversation>,
    private readonly specs: SandboxSpecs,
    private readonly host: HostIdentity,
  ) {}

  /** @throws InvalidInputError for what is not there, or is somebody else's */
  async find(userId: string, request: StartRequest): Promise<StartPlace> {
    if (request.sandbox_spec_id !== null && !this.specs.find(request.sandbox_spec_id)) {
      throw unknown('sandbox_spec_id', 'sandbox specification');
    }
    const parent = await this.findParent(userId, request);
    const merged = parent ? inherit(request, parent) : request;
    if (merged.sandbox_id === null) {
      return {
        sandboxId: newSandboxId(),
        hostId: this.host.id,
        sandboxMade: false,
        paused: false,
        workingDir: null,
        request: merged,
      };
    }
    const sandbox = await this.findSandbox(userId, merged.sandbox_id);
    if (!sandbox) {
      throw request.sandbox_id === null
        ? invalid('parent_conversation_id', 'Expected a conversation whose sandbox is still there.')
        : unknown('sandbox_id', 'sandbox');
    }
    return {
      sandboxId: sandbox.id,
      hostId: sandbox.hostId,
      sandboxMade: true,
      paused: sandbox.status === 'PAUSED' || sandbox.status === 'PAUSING',
      // Parent and child work on the same files.
      workingDir: parent?.sandboxId === sandbox.id ? parent.workingDir : null,
      request: merged,
    };
  }

  private async findParent(
    userId: string,
    { parent_conversation_id: id }: StartRequest,
  ): Promise<AppConversation | null> {
    const parent = id === null ? null : await this.conversations.findOneBy({ id, userId });
    if (id !== null && !parent) {
      throw unknown('parent_conversation_id', 'conversation');
    }
    return parent;
  }

  private async findSandbox(userId: string, id: string): Promise<Sandbox | null> {
    // An id of a client can be anything; PostgreSQL takes no NUL.
    return /^[0-9A-Za-z]{1,64}$/.test(id)
      ? this.sandboxes.findOneBy({ id, userId, status: Not('DELETING') })
      : null;
  }
}

function inherit(request: StartRequest, parent: AppConversation): StartRequest {
  const ownRepository = request.selected_repository !== null;
  return {
    ...request,
    sandbox_id: request.sandbox_id ?? parent.sandboxId,
    selected_repository: request.selected_repository ?? parent.selectedRepository,
    selected_branch: request.selected_branch ?? (ownRepository ? null : parent.selectedBranch),
    git_provider: request.git_provider ?? (ownRepository ? null : parent.gitProvider),
    llm_model: request.llm_model ?? parent.llmModel,
  };
}

function unknown(member: string, what: string): InvalidInputError {
  return invalid(member, `Expected the id of a ${what} that exists.`);
}

function invalid(member: string, msg: string): InvalidInputError {
  return new InvalidInputError([{ loc: ['body', member], msg, type: 'value_error' }]);
}

/** A start that can be stored. */
interface StartDraft {
  task: Pick<
    StartTask,
    | 'id'
    | 'userId'
    | 'status'
    | 'appConversationId'
    | 'sandboxId'
    | 'hostId'
    | 'request'
    | 'requestSecrets'
    | 'workingDir'
  >;
  /** The sandbox that has to be made; null: it is there. */
  sandbox: SandboxPlan | null;
  /** The sandbox that is there has to be resumed. */
  resumes: boolean;
}

/** Looks up what a start needs to know before it is stored; all ids are chosen here. */
@Injectable()
export class StartDrafts {
  constructor(
    private readonly cipher: SecretCipher,
    private readonly places: StartPlaces,
    private readonly sandboxes: StartSandboxes,
    private readonly jobs: StartJobs,
  ) {}

  /** @throws InvalidInputError for what the user does not have */
  async draft(userId: string, id: string, request: StartRequest): Promise<StartDraft> {
    const place = await this.places.find(userId, request);
    await this.jobs.prepare(place.hostId);
    return {
      task: {
        id,
        userId,
        status: 'WORKING',
        appConversationId: request.conversation_id ?? randomUUID(),
        sandboxId: place.sandboxId,
        hostId: place.hostId,
        workingDir: place.workingDir,
        ...splitSecrets(place.request, id, this.cipher),
      },
      sandbox: place.sandboxMade ? null : await this.sandboxes.plan(userId, request.sandbox_spec_id),
      resumes: place.paused,
    };
  }
}

const SCOPE = 'app-conversations';

const ID_IN_USE = `
  SELECT EXISTS (SELECT FROM app_conversations WHERE id = $1)
    OR EXISTS (SELECT FROM app_conversation_start_tasks WHERE app_conversation_id = $1) AS used`;

/** A start that waits for a place takes one of its host's workers: nobody's waiting may hold up everybody else's. */
const MOST_WAITING = 25;
const RETRY_AFTER_SECONDS = 30;

const UNFINISHED = `
  SELECT count(*)::int AS count FROM app_conversation_start_tasks
  WHERE user_id = $1 AND status NOT IN ('READY', 'ERROR')`;

/** Begins conversations. */
@Injectable()
export class ConversationStarter {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly idempotent: IdempotentRequests,
    private readonly drafts: StartDrafts,
    private readonly sandboxes: StartSandboxes,
    private readonly places: SandboxQuota,
    private readonly jobs: StartJobs,
  ) {}

  /**
   * Stores a start task, its sandbox if none is named, and the job that walks it, all or nothing, and answers at once.
   *
   * @param idempotencyKey `Idempotency-Key` of the request, if it had one: a repetition answers the task it made
   * @throws InvalidInputError for a sandbox, parent or specification that the user does not have, a conversation id in
   * use, and another request under the same key
   * @throws DomainError forbidden when the user may have no sandboxes here; rate_limited when too many of the user's
   * starts wait for a place, or (`sandbox_limit`) when there is none and nothing is waited for
   */
  async start(userId: string, request: StartRequest, idempotencyKey: string | null): Promise<StartTask> {
    const id = randomUUID();
    const drafting = this.drafts.draft(userId, id, request);
    // Read before the transaction, and judged in it: a repetition is answered even if its parent is gone by now.
    await Promise.allSettled([drafting]);
    const hash = createHash('sha256').update(JSON.stringify(request)).digest();
    let made: StartTask | null = null;
    const task = await this.dataSource.transaction(async (manager) => {
      const { resourceId } = await this.idempotent.run(
        manager,
        userId,
        SCOPE,
        idempotencyKey,
        hash,
        async () => {
          made = await this.insert(manager, await drafting);
          return made.id;
        },
      );
      return made ?? (await manager.findOneBy(StartTask, { id: resourceId }));
    });
    if (!task) {
      throw gone();
    }
    if (made !== null && task.sandboxMade) {
      // The answer goes first.
      setImmediate(() => this.sandboxes.kick(task.sandboxId));
    }
    return task;
  }

  private async insert(manager: EntityManager, { task, sandbox, resumes }: StartDraft): Promise<StartTask> {
    if (task.request.conversation_id !== null) {
      const [row] = await manager.query<{ used: boolean }[]>(ID_IN_USE, [task.appConversationId]);
      if (row?.used) {
        throw idInUse();
      }
    }
    if (resumes) {
      await this.places.expect(manager, task.userId);
    }
    const { sandboxMade, notes } = await this.place(manager, task, sandbox);
    const stored = await insertStartTask(manager, { ...task, sandboxMade, notes });
    await this.jobs.send(manager, stored);
    return stored;
  }

  private async place(
    manager: EntityManager,
    { sandboxId: id, userId, hostId }: StartDraft['task'],
    sandbox: SandboxPlan | null,
  ): Promise<Pick<StartTask, 'sandboxMade' | 'notes'>> {
    if (sandbox === null) {
      return { sandboxMade: true, notes: [] };
    }
    const place = await this.sandboxes.make(manager, { id, userId, hostId }, sandbox);
    if (place === 'busy') {
      await this.places.expect(manager, userId);
      // The task waits for a place; a worker makes the sandbox then.
      await this.refuseCrowd(manager, userId);
      return { sandboxMade: false, notes: sandbox.notes };
    }
    return { sandboxMade: true, notes: [...sandbox.notes, ...pausedNotes(place.paused)] };
  }

  /** Counted under the lock of the user that looking for a place took. */
  private async refuseCrowd(manager: EntityManager, userId: string): Promise<void> {
    const [row] = await manager.query<{ count: number }[]>(UNFINISHED, [userId]);
    if ((row?.count ?? 0) >= MOST_WAITING) {
      throw new DomainError(
        'rate_limited',
        'rate_limited',
        `${MOST_WAITING} conversations are being started already, and all sandboxes are busy; wait for some of them.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
  }
}

function idInUse(): InvalidInputError {
  return new InvalidInputError([
    { loc: ['body', 'conversation_id'], msg: 'Expected an id that is not in use.', type: 'value_error' },
  ]);
}

/** The task that the key stands for was deleted with its conversation. */
function gone(): InvalidInputError {
  return new InvalidInputError([
    {
      loc: ['header', 'Idempotency-Key'],
      msg: 'The conversation that was started under this key has been deleted; use a new key.',
      type: 'value_error',
    },
  ]);
}
