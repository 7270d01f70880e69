import { hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { AuthUser } from '../../auth/auth.decorators.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError, found, unknownId } from '../../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import type { Page } from '@slipway/api/pagination/page.js';
import { requireScope } from '../../common/scopes.js';
import { IdempotencyService } from '../idempotency/idempotency.service.js';
import { type SandboxSpec, SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { SandboxCreator } from './sandbox-creator.js';
import { briefCause, startedAgain } from './lifecycle/exit-diagnosis.js';
import { SandboxWorkerSignal } from './sandbox-events.js';
import { pausedNotes, SandboxQuota } from './sandbox-quota.js';
import { type SandboxRowStatus, statusAfter } from './sandbox-status.js';
import { SandboxQueries, type SandboxSnapshot, type SandboxView } from './sandbox.queries.js';
import { SandboxRepository, type ServiceCause } from './sandbox.repository.js';

const WAKE_MS = 60_000;
const PAUSE_MS = 10_000;
/** A process is stopped within 30 ms. */
const MIN_POLL_MS = 10;
const MAX_POLL_MS = 50;

export const OTHER_ID = {
  loc: ['query', 'sandbox_id'],
  msg: 'Expected the same id as in the path, or none.',
  type: 'value_error',
};

const IDEMPOTENCY_SCOPE = 'POST /api/v1/sandboxes';

/** What users do with their own sandboxes. Another user's sandbox is as unknown as one that never existed. */
@Injectable()
export class SandboxesService {
  private readonly wakes = new Map<string, Promise<void>>();

  constructor(
    private readonly queries: SandboxQueries,
    private readonly sandboxes: SandboxRepository,
    private readonly quota: SandboxQuota,
    private readonly creator: SandboxCreator,
    private readonly specs: SandboxSpecs,
    private readonly idempotency: IdempotencyService,
    private readonly worker: SandboxWorkerSignal,
    private readonly clock: Clock,
  ) {}

  /**
   * A repetition under the idempotency key returns the same sandbox, STARTING at first.
   * @throws DomainError not_found for an unknown specification, rate_limited (`sandbox_limit`), forbidden when
   * isolation is missing, gone when the sandbox of the repeated request was deleted
   */
  async create(userId: string, specId: string | null, idempotencyKey: string | null): Promise<SandboxView> {
    const spec = specId === null ? this.specs.default : this.specs.find(specId);
    if (!spec) {
      throw unknownSpecification();
    }
    const id = await this.createOnce(userId, spec, idempotencyKey);
    const view = await this.queries.find(userId, id);
    if (!view) {
      throw deletedSince();
    }
    return view;
  }

  /** @throws DomainError forbidden unless an administrator asks, insufficient_scope */
  async searchAll(user: AuthUser, limit: number, pageId?: string): Promise<Page<SandboxView>> {
    requireScope(user, 'admin');
    if (!user.isAdmin) {
      throw onlyAdministratorsListAll();
    }
    return this.queries.searchAll(limit, pageId);
  }

  /** Returns the user whose sandbox the actor may act on: its owner for an administrator, else the actor. */
  async ownerFor({ id: actorId, isAdmin }: Pick<AuthUser, 'id' | 'isAdmin'>, id: string): Promise<string> {
    const sandbox = isAdmin ? await this.sandboxes.find(id) : null;
    return sandbox?.userId ?? actorId;
  }

  /** Waits at most ten seconds for the stop. @throws DomainError not_found */
  async pause(userId: string, id: string): Promise<void> {
    for (;;) {
      const { status, generation } = found(await this.sandboxes.find(id, userId), 'sandbox');
      const stopped = { stoppedGeneration: generation };
      const asSeen = { userId, generation, status };
      const isDone =
        statusAfter('pause', status) === null
          ? await this.sandboxes.update(id, stopped, asSeen)
          : await this.sandboxes.transition(id, 'pause', {
              change: { ...stopped, statusDetail: null },
              condition: asSeen,
            });
      if (isDone) {
        await this.waitWhile('PAUSING', id, PAUSE_MS);
        return;
      }
      // It started, stopped or failed in this moment.
    }
  }

  /**
   * Returns the ids that were paused to make room. One that has failed says what it was started again for, and why it had
   * failed, unless its user asked for just that.
   * @throws DomainError not_found, rate_limited, forbidden
   */
  async resume(
    userId: string,
    id: string,
    what: string | null = null,
    cause?: ServiceCause,
  ): Promise<readonly string[]> {
    const { status, statusDetail: before } = found(await this.sandboxes.find(id, userId), 'sandbox');
    if (statusAfter('resume', status) === null) {
      return [];
    }
    const lastActivityAt = new Date(this.clock.now());
    const evictable = await this.quota.findEvictable(userId, id);
    const paused = await this.sandboxes.transaction(async (manager) => {
      const ids = await this.quota.claim(manager, userId, evictable, id);
      const again = status === 'ERROR' && what !== null ? [startedAgain(what, before)] : [];
      const statusDetail = [...again, ...pausedNotes(ids)].join(' ') || null;
      await this.sandboxes.transition(id, 'resume', {
        change: { statusDetail, lastActivityAt },
        manager,
        cause,
      });
      return ids;
    });
    this.worker.wake();
    return paused;
  }

  /**
   * Resumes a sandbox and waits at most a minute; concurrent callers share the start.
   * @param what it is for, in words for people
   * @param cause where no request is it
   * @throws DomainError unavailable when it fails; as `resume` does
   */
  async wake(userId: string, id: string, what: string, cause?: ServiceCause): Promise<void> {
    const wake =
      this.wakes.get(id) ?? this.resumeAndWait(userId, id, what, cause).finally(() => this.wakes.delete(id));
    this.wakes.set(id, wake);
    await wake;
  }

  /** Whether this process is waking it. */
  isWaking(id: string): boolean {
    return this.wakes.has(id);
  }

  touch(id: string): void {
    this.sandboxes.touch(id);
  }

  private async resumeAndWait(userId: string, id: string, what: string, cause?: ServiceCause): Promise<void> {
    await this.resume(userId, id, what, cause);
    const { status, statusDetail } = await this.waitWhile('STARTING', id, WAKE_MS);
    if (status === 'ERROR') {
      throw couldNotStart(what, statusDetail);
    }
  }

  private async waitWhile(
    passing: SandboxRowStatus,
    id: string,
    timeoutMs: number,
  ): Promise<SandboxSnapshot> {
    for (let waited = 0, pause = MIN_POLL_MS; ; pause = Math.min(2 * pause, MAX_POLL_MS)) {
      const snapshot = await this.queries.snapshot(id);
      if (snapshot.status !== passing || waited >= timeoutMs) {
        return snapshot;
      }
      await delay(pause);
      waited += pause;
    }
  }

  /** Removes it with all files, in any status. Its conversations stay readable. @throws DomainError not_found */
  async remove(userId: string, id: string): Promise<void> {
    const options = { change: { statusDetail: null }, condition: { userId } };
    if (!(await this.sandboxes.transition(id, 'remove', options))) {
      throw unknownId('sandbox');
    }
  }

  private async createOnce(
    userId: string,
    spec: SandboxSpec,
    idempotencyKey: string | null,
  ): Promise<string> {
    const plan = await this.creator.plan(userId, spec.id);
    const requestHash = hash('sha256', JSON.stringify({ spec: spec.id }), 'buffer');
    const given = { userId, scope: IDEMPOTENCY_SCOPE, key: idempotencyKey, requestHash };
    const created = await this.sandboxes.transaction((manager) =>
      this.idempotency.run(manager, given, async () => {
        const { id } = await this.creator.create(manager, plan);
        return id;
      }),
    );
    this.worker.wake();
    return created;
  }
}

function couldNotStart(what: string, failure: string | null): DomainError {
  const detail = `The sandbox could not be started for ${what}: ${briefCause(failure)}`;
  return new DomainError('sandbox_not_running', detail, { kind: 'unavailable' });
}

/** 404 for another user's sandbox too. */
export function unknownSpecification(): DomainError {
  const detail = 'There is no sandbox specification with this id; see GET /api/v1/sandbox-specs/search.';
  return new DomainError('not_found', detail);
}

export function deletedSince(): DomainError {
  return new DomainError('not_found', 'The sandbox that this Idempotency-Key made was deleted.', {
    kind: 'gone',
  });
}

export function onlyAdministratorsListAll(): DomainError {
  const detail = 'Only administrators may list the sandboxes of all users.';
  return new DomainError('forbidden', detail);
}

/** Some clients repeat the id of the path in the query. A mismatch is refused: the wrong sandbox might be deleted. */
export function requireSameId(id: string, repeatedId: string | undefined): void {
  if (repeatedId !== undefined && repeatedId !== id) {
    throw new InvalidInputError(OTHER_ID);
  }
}
