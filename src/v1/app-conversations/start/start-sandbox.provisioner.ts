import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../../../common/clock.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { AppConfig } from '../../../config/app-config.js';
import { type SandboxSpec, SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { toLaunch } from '../../sandboxes/lifecycle/launch-plan.js';
import { SandboxCreator } from '../../sandboxes/sandbox-creator.js';
import { SandboxWorkerSignal } from '../../sandboxes/sandbox-events.js';
import { pausedNotes, quotaExceeded, SandboxQuota } from '../../sandboxes/sandbox-quota.js';
import type { Sandbox } from '../../sandboxes/sandbox.entity.js';
import { SandboxesService } from '../../sandboxes/sandboxes.service.js';
import { type SandboxOverrides, UserOverrides } from '../../sandboxes/user-overrides.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { StartFailure } from './start-failure.js';

/** How long each keep-alive of an unfinished start's sandbox lasts; renewed while the start goes on. */
export const KEEP_ALIVE_SECONDS = 120;

/** A sandbox that is to be created. */
export interface SandboxPlan {
  spec: SandboxSpec;
  overrides: SandboxOverrides | null;
  /** For the user: which settings have no effect. */
  notes: string[];
  /** Sandboxes that could be paused to make room (`SandboxQuota.findEvictable`). */
  evictable: Sandbox[] | null;
}

/** A sandbox that has a row now. */
interface CreatedSandbox {
  id: string;
  /** Sandboxes that were paused to make room for it. */
  paused: readonly string[];
}

/** Result of an attempt to get a sandbox started. */
interface ProvisionAttempt {
  /** False: the user's quota is exhausted by busy sandboxes. */
  hasQuota: boolean;
  /** As it is now. */
  task: StartTask;
}

/** Rolls back the transaction of an attempt without quota. */
class QuotaExhausted extends Error {}

/** Has the sandboxes of starts created or resumed as soon as their users' quotas allow. */
@Injectable()
export class StartSandboxProvisioner {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly quota: SandboxQuota,
    private readonly creator: SandboxCreator,
    private readonly sandboxes: SandboxesService,
    private readonly worker: SandboxWorkerSignal,
    private readonly specs: SandboxSpecs,
    private readonly overrides: UserOverrides,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /**
   * Reads what `create` needs. To be called before its transaction: agent servers are asked, which may take seconds.
   *
   * @param specId null: the default specification
   */
  async plan(userId: string, specId: string | null): Promise<SandboxPlan> {
    const spec = (specId === null ? null : this.specs.find(specId)) ?? this.specs.default;
    const [overrides, evictable] = await Promise.all([
      this.overrides.find(userId),
      this.quota.findEvictable(userId),
    ]);
    const { notes } = toLaunch(spec, overrides, this.config.sandboxes.backend);
    return { spec, overrides, notes, evictable };
  }

  /**
   * Creates the row of a sandbox in the caller's transaction, if the user has quota. The caller calls
   * `SandboxWorkerSignal.wake` once that is committed.
   *
   * @param id null: a warm sandbox will do
   * @throws DomainError forbidden when the user may have no sandboxes here
   */
  async create(
    manager: EntityManager,
    { id, userId, hostId }: { id: string | null; userId: string; hostId: string },
    { spec, overrides, evictable }: SandboxPlan,
  ): Promise<'busy' | CreatedSandbox> {
    const claim = await this.quota.claim(manager, userId, evictable, id);
    if (claim === 'busy') {
      return claim;
    }
    const { paused } = claim;
    const sandbox = { id, userId, spec, overrides, hostId, keepAliveSeconds: KEEP_ALIVE_SECONDS, paused };
    return { id: await this.creator.create(manager, sandbox), paused };
  }

  /**
   * Creates the sandbox of a task that waited for quota, under the id that the task has had since.
   *
   * @throws StartFailure when the task has waited too long, may not wait, or its user may have no sandboxes
   */
  async createFor(task: StartTask): Promise<ProvisionAttempt> {
    return this.attempt(task, async () => {
      const { sandboxId: id, userId, hostId } = task;
      const plan = await this.plan(userId, task.request.sandbox_spec_id);
      const updated = await this.tasks.transaction(async (manager) => {
        // First, so that a task that was deleted meanwhile leaves nothing behind.
        const change = { sandboxMade: true, detail: null, notes: plan.notes };
        const changed = await this.tasks.update(task, change, manager);
        const claim = await this.create(manager, { id, userId, hostId }, plan);
        if (claim === 'busy') {
          throw new QuotaExhausted();
        }
        const notes = [...plan.notes, ...pausedNotes(claim.paused)];
        return this.tasks.update(changed, { notes }, manager);
      });
      this.worker.wake();
      return updated;
    });
  }

  /**
   * Has the paused sandbox of a task resumed.
   *
   * @throws StartFailure as `createFor` does
   */
  async resumeFor(task: StartTask): Promise<ProvisionAttempt> {
    return this.attempt(task, async () => {
      const paused = await this.sandboxes.resume(task.userId, task.sandboxId);
      return this.tasks.update(task, { notes: [...task.notes, ...pausedNotes(paused)] });
    });
  }

  private async attempt(task: StartTask, provision: () => Promise<StartTask>): Promise<ProvisionAttempt> {
    try {
      return { hasQuota: true, task: await provision() };
    } catch (error) {
      if (
        error instanceof QuotaExhausted ||
        (error instanceof DomainError && error.code === 'sandbox_limit')
      ) {
        return { hasQuota: false, task: await this.noteWaiting(task) };
      }
      if (error instanceof DomainError && error.kind === 'not_found') {
        // Deleted just now: the caller finds out when it looks again.
        return { hasQuota: true, task };
      }
      if (error instanceof DomainError && (error.kind === 'forbidden' || error.kind === 'conflict')) {
        throw new StartFailure('sandbox', error.message, { cause: error });
      }
      throw error;
    }
  }

  /** @throws StartFailure when the task must not wait for quota, or not any longer */
  private async noteWaiting(task: StartTask): Promise<StartTask> {
    const { maxRunning, waitSeconds, limitPolicy } = this.config.sandboxes;
    if (limitPolicy === 'reject') {
      throw new StartFailure('quota', quotaExceeded(this.config.sandboxes).message);
    }
    const all = `All ${maxRunning} sandboxes that you may have running are in use`;
    if (this.clock.now() >= task.createdAt.getTime() + waitSeconds * 1000) {
      throw new StartFailure(
        'quota',
        `${all}, and none became free within ${waitSeconds} seconds. Pause or delete one, then start again.`,
      );
    }
    return this.tasks.update(task, { detail: `${all}: waiting for one to become free.` });
  }
}
