import { createHash, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { DomainError } from '../../../common/errors/domain-error.js';
import { InvalidInputError } from '../../../common/errors/invalid-input.error.js';
import { IdempotentRequests } from '../../idempotency/idempotent-requests.js';
import { pausedNotes } from '../../sandboxes/paused-notes.js';
import { SandboxPlaces } from '../../sandboxes/sandbox-places.js';
import { StartTask } from '../start-task.entity.js';
import { insertStartTask } from './insert-start-task.js';
import { StartDrafts, type StartDraft } from './start-drafts.js';
import { StartJobs } from './start-jobs.js';
import type { StartRequest } from './start-request.js';
import { type SandboxPlan, StartSandboxes } from './start-sandboxes.js';

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
    private readonly places: SandboxPlaces,
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
