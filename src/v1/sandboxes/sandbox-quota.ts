import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { lockUser } from '../../auth/user.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { AppConfig } from '../../config/app-config.js';
import type { SandboxConfig } from '../../config/sandbox-config.js';
import { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { BackendReadiness } from './lifecycle/backend-readiness.js';
import { IdlenessProbe } from './lifecycle/idle-reaper.js';
import type { Sandbox } from './sandbox.entity.js';
import { SandboxMetrics } from './sandbox.metrics.js';
import { SandboxQueries } from './sandbox.queries.js';
import { SandboxRepository } from './sandbox.repository.js';

/** Quota may become free at any moment, but polling faster is wasteful. */
const RETRY_AFTER_SECONDS = 30;

/** Limits a user to `MAX_RUNNING_SANDBOXES` starting or running; `SANDBOX_LIMIT_POLICY` decides about one more. */
@Injectable()
export class SandboxQuota {
  constructor(
    private readonly queries: SandboxQueries,
    private readonly config: AppConfig,
    private readonly sandboxes: SandboxRepository,
    private readonly idleness: IdlenessProbe,
    private readonly backend: SandboxBackend,
    private readonly readiness: BackendReadiness,
    private readonly metrics: SandboxMetrics,
  ) {}

  /** Idle sandboxes, longest idle first; null while there is room. Slow, so call it before `claim`'s transaction. */
  async findEvictable(userId: string, exceptId: string | null = null): Promise<Sandbox[] | null> {
    return (await this.surplus(null, userId, exceptId)) > 0 ? this.findIdle(null, userId, exceptId) : null;
  }

  /** What `claim` would refuse if it never paused. @throws DomainError rate_limited (`sandbox_limit`) */
  async assertAvailable(manager: EntityManager, userId: string): Promise<void> {
    const { sandboxes } = this.config;
    if (sandboxes.limitPolicy === 'reject' && (await this.surplus(manager, userId, null)) > 0) {
      throw quotaExceeded(sandboxes);
    }
  }

  /** Call under the user's lock, which `claim` takes. @throws DomainError conflict (`stored_sandbox_limit`) */
  async assertStorable(manager: EntityManager, userId: string): Promise<void> {
    const { maxStored } = this.config.sandboxes;
    if (await this.queries.hasAsMany(manager, userId, maxStored)) {
      throw tooManySandboxes(maxStored);
    }
  }

  /**
   * Makes room until the transaction ends, and returns what was paused for it; then call `SandboxWorkerSignal.wake`.
   * @throws DomainError forbidden; rate_limited (`sandbox_limit`), after which the transaction may go on
   */
  async claim(
    manager: EntityManager,
    userId: string,
    evictable: readonly Sandbox[] | null,
    exceptId: string | null = null,
  ): Promise<readonly string[]> {
    // The user is locked first, as a request with an idempotency key does: the opposite order could deadlock.
    await lockUser(manager, userId);
    await this.assertSeparated(manager, userId);
    const surplus = await this.surplus(manager, userId, exceptId);
    if (surplus <= 0) {
      return [];
    }
    // `evictable` is null only if the room was taken just now: this request then asks the agent servers while others wait.
    const idle = evictable ?? (await this.findIdle(manager, userId, exceptId));
    return this.pauseIdle(manager, idle, surplus);
  }

  /** A second user is refused where nothing isolates sandboxes, unless the operator allows it. */
  private async assertSeparated(manager: EntityManager, userId: string): Promise<void> {
    // If no sandbox can run at all, there is nothing to separate; the start says why it fails.
    const isExempt = this.config.sandboxes.allowUnsandboxed || !(await this.readiness.isReady());
    if (isExempt || this.backend.isolation !== 'none') {
      return;
    }
    if (await this.queries.othersHaveSandboxes(manager, userId)) {
      throw new DomainError(
        'forbidden',
        'Another user has sandboxes, and nothing separates sandboxes on this machine from each other. The operator can install bubblewrap (SANDBOX_ISOLATION), use SANDBOX_BACKEND=docker, or set ALLOW_UNSANDBOXED=true.',
      );
    }
  }

  private async surplus(
    manager: EntityManager | null,
    userId: string,
    exceptId: string | null,
  ): Promise<number> {
    const active = await this.queries.countActive(manager, userId, exceptId);
    return active - this.config.sandboxes.maxRunning + 1;
  }

  private async findIdle(
    manager: EntityManager | null,
    userId: string,
    exceptId: string | null,
  ): Promise<Sandbox[]> {
    if (this.config.sandboxes.limitPolicy === 'reject') {
      return [];
    }
    return this.idleness.findIdle(await this.queries.findActive(manager, userId, exceptId));
  }

  /** Pauses as many as necessary, or none: no sandbox is paused in vain. */
  private async pauseIdle(
    manager: EntityManager,
    idle: readonly Sandbox[],
    surplus: number,
  ): Promise<readonly string[]> {
    if (idle.length < surplus) {
      throw quotaExceeded(this.config.sandboxes);
    }
    const paused = await manager.transaction((savepoint) => this.pause(savepoint, idle, surplus));
    this.metrics.evicted(paused.length);
    return paused;
  }

  private async pause(manager: EntityManager, idle: readonly Sandbox[], surplus: number): Promise<string[]> {
    const { maxRunning } = this.config.sandboxes;
    const statusDetail = `Paused to make room: at most ${maxRunning} may run at a time.`;
    const paused: string[] = [];
    for (const { id, generation, lastActivityAt } of idle) {
      // Activity since the probe prevents the pause.
      const condition = { status: 'RUNNING' as const, generation, lastActivityAt };
      const options = { change: { statusDetail }, condition, manager, cause: 'quota' as const };
      if (await this.sandboxes.transition(id, 'pause', options)) {
        paused.push(id);
      }
      if (paused.length === surplus) {
        return paused;
      }
    }
    throw quotaExceeded(this.config.sandboxes);
  }
}

/** 429: the quota is exhausted, and no sandbox is paused to make room. */
export function quotaExceeded({
  maxRunning,
  limitPolicy,
}: Pick<SandboxConfig, 'maxRunning' | 'limitPolicy'>): DomainError {
  return new DomainError(
    'sandbox_limit',
    limitPolicy === 'reject'
      ? `As many of your sandboxes run as may at a time (${maxRunning}). Pause or delete one, then try again.`
      : `All ${maxRunning} sandboxes that may run at a time are busy. Pause or delete one, or wait until one is idle.`,
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

export function tooManySandboxes(most: number): DomainError {
  const detail = `You have ${most} sandboxes, the most that are kept, paused ones included. Delete some of them (DELETE /api/v1/sandboxes/{id}), then try again.`;
  return new DomainError('stored_sandbox_limit', detail);
}

/** Returns notes for the user on the idle sandboxes that were paused; empty when none was. */
export function pausedNotes(ids: readonly string[]): string[] {
  const [first, ...others] = ids;
  if (first === undefined) {
    return [];
  }
  return others.length === 0
    ? [`Sandbox ${first} was idle for longest, and was paused to make room.`]
    : [`Sandboxes ${[first, ...others].join(', ')} were idle for longest, and were paused to make room.`];
}
