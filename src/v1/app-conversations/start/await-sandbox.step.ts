import { EventEmitter, once } from 'node:events';
import { Injectable } from '@nestjs/common';
import { lockUser } from '../../../auth/user.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { AppConfig } from '../../../config/app-config.js';
import { SandboxCreator } from '../../sandboxes/sandbox-creator.js';
import { SandboxEvents, SandboxWorkerSignal } from '../../sandboxes/sandbox-events.js';
import { isStartedAgain, startedAgain } from '../../sandboxes/lifecycle/exit-diagnosis.js';
import { pausedNotes, quotaExceeded } from '../../sandboxes/sandbox-quota.js';
import { SandboxQueries, type SandboxSnapshot } from '../../sandboxes/sandbox.queries.js';
import { SandboxesService } from '../../sandboxes/sandboxes.service.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { StartFailure } from './start-failure.js';

/** Renewed while the start goes on. */
export const KEEP_ALIVE_SECONDS = 120;

/** Changes by other processes may stay unseen for this long. */
const POLL_MS = 250;
const QUOTA_POLL_MS = 1_000;
/** What a sandbox is started again for. */
const WHAT = 'another conversation';

/** WAITING_FOR_SANDBOX: creates or resumes the sandbox as soon as the quota allows, and waits for it. */
@Injectable()
export class AwaitSandboxStep {
  private readonly changes = new EventEmitter().setMaxListeners(0);

  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly sandboxes: SandboxQueries,
    private readonly creator: SandboxCreator,
    private readonly service: SandboxesService,
    private readonly worker: SandboxWorkerSignal,
    events: SandboxEvents,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {
    events.on('running', (id) => void this.changes.emit(id));
    events.on('stopped', (id) => void this.changes.emit(id));
  }

  /** Returns the task in the same status. Throws StartFailure, StartSuperseded, the signal's reason. */
  async run(first: StartTask, signal: AbortSignal): Promise<StartTask> {
    let task = first;
    for (;;) {
      signal.throwIfAborted();
      const snapshot = await this.sandboxes.snapshot(task.sandboxId);
      const next = nextSandboxAction(snapshot, {
        existed: task.sandboxMade,
        isRestartable: mayRestart(task),
      });
      switch (next.action) {
        case 'go-on':
          return await this.tasks.update(task, { notes: withDetail(task.notes, next.detail) });
        case 'fail':
          throw new StartFailure('sandbox', next.reason);
        case 'wait':
          task = await this.tasks.update(task, { detail: next.detail });
          await this.untilChanged(task.sandboxId, POLL_MS, signal);
          break;
        case 'create':
        case 'resume':
          task = await this.provision(task, next, signal);
      }
    }
  }

  /** Waits a moment where the quota is exhausted. Throws StartFailure when the start must not wait. */
  private async provision(
    task: StartTask,
    next: ProvisioningAction,
    signal: AbortSignal,
  ): Promise<StartTask> {
    try {
      return await (next.action === 'create' ? this.create(task) : this.resume(task, next.failure));
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      if (error.code === 'sandbox_limit') {
        const waiting = await this.noteWaiting(task);
        await this.untilChanged(task.sandboxId, QUOTA_POLL_MS, signal);
        return waiting;
      }
      if (error.kind === 'not_found') {
        // Deleted just now, which the caller will see.
        return task;
      }
      throw error.kind === 'forbidden' || error.kind === 'conflict'
        ? new StartFailure('sandbox', error.message, { cause: error })
        : error;
    }
  }

  /** Creates a sandbox that waited for quota, under its chosen id. */
  private async create(task: StartTask): Promise<StartTask> {
    const { sandboxId: id, userId, hostId, request } = task;
    const plan = await this.creator.plan(userId, request.sandbox_spec_id, undefined, request.egress);
    const updated = await this.tasks.transaction(async (manager) => {
      await lockUser(manager, userId);
      // Before the sandbox, so that a deleted task leaves nothing behind.
      const change = { sandboxMade: true, detail: null, notes: plan.notes };
      const changed = await this.tasks.update(task, change, manager);
      const cause = request.cause;
      const options = { id, hostId, keepAliveSeconds: KEEP_ALIVE_SECONDS, cause, hasSetup: true };
      const { paused } = await this.creator.create(manager, plan, options);
      const notes = [...plan.notes, ...pausedNotes(paused)];
      return this.tasks.update(changed, { notes }, manager);
    });
    this.worker.wake();
    return updated;
  }

  private async resume(task: StartTask, failure: string | null): Promise<StartTask> {
    const paused = await this.service.resume(task.userId, task.sandboxId, WHAT);
    const again = failure === null ? [] : [startedAgain(WHAT, failure)];
    return this.tasks.update(task, { notes: [...task.notes, ...again, ...pausedNotes(paused)] });
  }

  /** Waits until this process changes the sandbox, or for the timeout. Throws the signal's reason. */
  private async untilChanged(sandboxId: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const end = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    await once(this.changes, sandboxId, { signal: end }).catch(() => undefined);
    signal.throwIfAborted();
  }

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

/** The sandbox's detail repeats its notes. */
function withDetail(notes: readonly string[], detail: string | null): string[] {
  return detail === null ? [...notes] : [detail, ...notes.filter((note) => !detail.includes(note))];
}

/** One that others use, too, is started again once. */
function mayRestart({ request, notes }: StartTask): boolean {
  return request.sandbox_id !== null && !notes.some(isStartedAgain);
}

/** `failure`: why it has to be started again. */
type ProvisioningAction = { action: 'create' } | { action: 'resume'; failure: string | null };

export type SandboxNextAction =
  | ProvisioningAction
  /** `detail`: settings without an effect in it. */
  | { action: 'go-on'; detail: string | null }
  | { action: 'wait'; detail: string | null }
  | { action: 'fail'; reason: string };

/** `existed`: without a row, the sandbox is gone. */
export function nextSandboxAction(
  { status, statusDetail }: SandboxSnapshot,
  { existed, isRestartable }: { existed: boolean; isRestartable: boolean },
): SandboxNextAction {
  switch (status) {
    case null:
      return existed ? { action: 'fail', reason: 'The sandbox has been deleted.' } : { action: 'create' };
    case 'RUNNING':
      return { action: 'go-on', detail: statusDetail };
    case 'STARTING':
      return { action: 'wait', detail: statusDetail };
    case 'PAUSING':
      return { action: 'wait', detail: 'The sandbox is being paused; it is resumed after that.' };
    case 'PAUSED':
      return { action: 'resume', failure: null };
    case 'ERROR': {
      const failure = statusDetail ?? 'no cause is known';
      return isRestartable
        ? { action: 'resume', failure }
        : { action: 'fail', reason: `The sandbox failed: ${failure}` };
    }
    case 'MISSING':
      return { action: 'fail', reason: `The sandbox is MISSING: ${statusDetail ?? 'its files are gone'}` };
    case 'DELETING':
      return { action: 'fail', reason: 'The sandbox is being deleted.' };
  }
}
