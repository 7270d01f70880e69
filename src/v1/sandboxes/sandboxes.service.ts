import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { DomainError } from '../../common/errors/domain-error.js';
import type { Page } from '../../common/pagination/page.js';
import { IdempotencyService } from '../idempotency/idempotency.service.js';
import type { SandboxSpec } from '../sandbox-specs/sandbox-spec.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { pausedNotes, SandboxCreation } from './sandbox-creation.js';
import { SandboxWorkerSignal } from './sandbox-leases.js';
import { SandboxQuota, unknownSandbox } from './sandbox-quota.js';
import { statusAfter } from './sandbox.entity.js';
import { SandboxQueries, type SandboxView } from './sandbox.queries.js';
import { SandboxRepository } from './sandbox.repository.js';
import { newSandboxId } from './session-key.js';
import { UserOverrides } from './user-overrides.js';

const SCOPE = 'POST /api/v1/sandboxes';

/** Takes users' orders of new sandboxes. */
@Injectable()
export class SandboxOrders {
  constructor(
    private readonly store: SandboxRepository,
    private readonly requests: IdempotencyService,
    private readonly places: SandboxQuota,
    private readonly creation: SandboxCreation,
    private readonly overrides: UserOverrides,
  ) {}

  /**
   * Claims a place and has a sandbox started in it.
   *
   * @returns the id of the new sandbox, or of the one that an earlier request with this key ordered
   * @throws DomainError rate_limited (`sandbox_limit`) when there is no place
   */
  async order(userId: string, spec: SandboxSpec, idempotencyKey: string | null): Promise<string> {
    const [overrides, spare] = await Promise.all([
      this.overrides.find(userId),
      this.places.findEvictable(userId),
    ]);
    const requestHash = hash('sha256', JSON.stringify({ spec: spec.id }), 'buffer');
    const { resourceId } = await this.store.transaction((manager) =>
      this.requests.run(manager, userId, SCOPE, idempotencyKey, requestHash, async () => {
        const paused = await this.places.require(manager, userId, spare);
        const id = newSandboxId();
        await this.creation.insert(manager, { id, userId, spec, overrides, heldSeconds: 0, paused });
        return id;
      }),
    );
    this.creation.kick(resourceId);
    return resourceId;
  }
}

/** Brings sandboxes back: from a pause, and from an error. */
@Injectable()
export class SandboxResume {
  constructor(
    private readonly store: SandboxRepository,
    private readonly places: SandboxQuota,
    private readonly kicks: SandboxWorkerSignal,
    private readonly clock: Clock,
  ) {}

  /**
   * Has the sandbox started again, in a place that is claimed for it; nothing happens when it starts or runs already.
   *
   * @param userId its owner; null: whoever that is
   * @returns the ids of sandboxes that were paused to make room; while it starts its `status_detail` names them
   * @throws DomainError not_found for an unknown sandbox
   * @throws DomainError rate_limited (`sandbox_limit`) when there is no place
   */
  async request(userId: string | null, id: string): Promise<readonly string[]> {
    const sandbox = await this.store.find(id, userId);
    if (!sandbox) {
      throw unknownSandbox();
    }
    if (statusAfter('resume', sandbox.status) === null) {
      return [];
    }
    const now = this.clock.now();
    const spare = await this.places.findEvictable(sandbox.userId, id);
    const paused = await this.store.transaction(async (manager) => {
      const ids = await this.places.require(manager, sandbox.userId, spare, id);
      await this.store.move(
        id,
        'resume',
        {
          statusDetail: pausedNotes(ids).join(' ') || null,
          lastActivityAt: new Date(now),
        },
        {},
        manager,
      );
      return ids;
    });
    this.kicks.wake();
    return paused;
  }
}

/** What users do with their own sandboxes. Another user's are as unknown as those that never were. */
@Injectable()
export class SandboxesService {
  constructor(
    private readonly reader: SandboxQueries,
    private readonly store: SandboxRepository,
    private readonly orders: SandboxOrders,
    private readonly resumption: SandboxResume,
    private readonly specs: SandboxSpecs,
  ) {}

  async search(userId: string, limit: number, pageId: string | undefined): Promise<Page<SandboxView>> {
    return this.reader.search(userId, limit, pageId);
  }

  async batch(userId: string, ids: readonly string[]): Promise<(SandboxView | null)[]> {
    return this.reader.batch(userId, ids);
  }

  async find(userId: string, id: string): Promise<SandboxView | null> {
    return this.reader.find(userId, id);
  }

  /**
   * Orders a sandbox; it is STARTING when this returns.
   *
   * @param specId null: the default specification
   * @param idempotencyKey a repetition under it answers the same sandbox
   * @throws DomainError not_found for an unknown specification, rate_limited (`sandbox_limit`) when no place is free,
   *   forbidden when nothing would separate it from other users' sandboxes, gone when the repeated one was deleted
   */
  async create(userId: string, specId: string | null, idempotencyKey: string | null): Promise<SandboxView> {
    const spec = specId === null ? this.specs.default : this.specs.find(specId);
    if (!spec) {
      throw new DomainError(
        'not_found',
        'not_found',
        'There is no sandbox specification with this id; see GET /api/v1/sandbox-specs/search.',
      );
    }
    const id = await this.orders.order(userId, spec, idempotencyKey);
    const view = await this.reader.find(userId, id);
    if (!view) {
      throw new DomainError('gone', 'not_found', 'The sandbox that this Idempotency-Key made was deleted.');
    }
    return view;
  }

  /**
   * Has it stopped, with its files kept; nothing happens where nothing runs.
   *
   * @throws DomainError not_found
   */
  async pause(userId: string, id: string): Promise<void> {
    const paused = await this.store.move(id, 'pause', { statusDetail: null }, { userId });
    if (!paused && !(await this.store.find(id, userId))) {
      throw unknownSandbox();
    }
  }

  /** @throws DomainError not_found, rate_limited (`sandbox_limit`) when no place is free */
  async resume(userId: string, id: string): Promise<void> {
    await this.resumption.request(userId, id);
  }

  /**
   * Has it removed with its files, whatever it is doing; it is unknown from now on. Its conversations stay readable.
   *
   * @throws DomainError not_found
   */
  async remove(userId: string, id: string): Promise<void> {
    if (!(await this.store.move(id, 'remove', { statusDetail: null }, { userId }))) {
      throw unknownSandbox();
    }
  }
}
