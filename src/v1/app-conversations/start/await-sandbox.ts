import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Clock } from '../../../common/clock.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { AppConfig } from '../../../config/app-config.js';
import { NamedStatement } from '../../../database/named-statement.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { pausedNotes } from '../../sandboxes/sandbox-creation.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { quotaExceeded } from '../../sandboxes/sandbox-quota.js';
import type { SandboxRowStatus } from '../../sandboxes/sandbox.entity.js';
import { type RunningSandbox, RunningSandboxes } from '../../sandboxes/sandbox.queries.js';
import { SandboxResume } from '../../sandboxes/sandboxes.service.js';
import { agentDialect, type AgentDialect } from '../agent-request/agent-settings.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { StartFailure } from './start-errors.js';
import { StartSandboxes } from './start-sandbox.js';

/** Lets starts wait for sandboxes: the end of a wait comes with what this process hears, or with the time. */
@Injectable()
export class SandboxChanges {
  private readonly waiting = new Map<string, Set<AbortController>>();

  constructor(listeners: SandboxEvents) {
    listeners.onRunning((id) => this.tell(id));
    listeners.onStopped((id) => this.tell(id));
  }

  /**
   * Waits until something is heard of the sandbox, at most so long; what became of it is for the caller to look at.
   *
   * @throws the signal's reason when it aborts
   */
  async wait(sandboxId: string, atMostMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const heard = new AbortController();
    const waiting = this.waiting.get(sandboxId) ?? new Set();
    this.waiting.set(sandboxId, waiting.add(heard));
    try {
      await delay(atMostMs, undefined, { signal: AbortSignal.any([signal, heard.signal]) });
    } catch (error) {
      if (!heard.signal.aborted) {
        throw error;
      }
    } finally {
      waiting.delete(heard);
      if (waiting.size === 0) {
        this.waiting.delete(sandboxId);
      }
    }
    signal.throwIfAborted();
  }

  private tell(sandboxId: string): void {
    this.waiting.get(sandboxId)?.forEach((heard) => heard.abort());
  }
}

/** What became of an attempt to get a sandbox going. */
interface SandboxAttempt {
  /** False: all places of the user are taken by busy sandboxes. */
  placed: boolean;
  /** As it is now. */
  task: StartTask;
}

/** Ends a transaction that has found no place. */
class NoPlace extends Error {}

/** Gets sandboxes of starts going, as soon as their users have a place for them. */
@Injectable()
export class StartSandboxMaker {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly sandboxes: StartSandboxes,
    private readonly resumes: SandboxResume,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /**
   * Makes the row of the task's sandbox.
   *
   * @throws StartFailure when the task has waited long enough for a place, or is not to wait for one, or its user may
   *   have no sandbox
   */
  async make(task: StartTask): Promise<SandboxAttempt> {
    return this.attempt(task, async () => {
      const { sandboxId: id, userId, hostId } = task;
      const plan = await this.sandboxes.plan(userId, task.request.sandbox_spec_id);
      const made = await this.tasks.transaction(async (manager) => {
        // First, so that a task that was deleted meanwhile leaves nothing behind.
        const change = { sandboxMade: true, detail: null, notes: plan.notes };
        const changed = await this.tasks.note(task, change, manager);
        const place = await this.sandboxes.make(manager, { id, userId, hostId }, plan);
        if (place === 'busy') {
          throw new NoPlace();
        }
        const notes = [...plan.notes, ...pausedNotes(place.paused)];
        return this.tasks.note(changed, { notes }, manager);
      });
      this.sandboxes.kick(id);
      return made;
    });
  }

  /**
   * Has the task's sandbox resumed.
   *
   * @throws StartFailure as `make` does
   */
  async resume(task: StartTask): Promise<SandboxAttempt> {
    return this.attempt(task, async () => {
      const paused = await this.resumes.request(task.userId, task.sandboxId);
      return this.tasks.note(task, { notes: [...task.notes, ...pausedNotes(paused)] });
    });
  }

  private async attempt(task: StartTask, get: () => Promise<StartTask>): Promise<SandboxAttempt> {
    try {
      return { placed: true, task: await get() };
    } catch (error) {
      if (error instanceof NoPlace || (error instanceof DomainError && error.code === 'sandbox_limit')) {
        return { placed: false, task: await this.wait(task) };
      }
      if (error instanceof DomainError && error.kind === 'not_found') {
        // Deleted just now: whoever looks again sees that.
        return { placed: true, task };
      }
      if (error instanceof DomainError && (error.kind === 'forbidden' || error.kind === 'conflict')) {
        throw new StartFailure(error.message, { cause: error });
      }
      throw error;
    }
  }

  private async wait(task: StartTask): Promise<StartTask> {
    const { maxRunning, waitSeconds, limitPolicy } = this.config.sandboxes;
    if (limitPolicy === 'reject') {
      throw new StartFailure(quotaExceeded(this.config.sandboxes).message);
    }
    const all = `All ${maxRunning} sandboxes that you may have running are in use`;
    if (this.clock.now() >= task.createdAt.getTime() + waitSeconds * 1000) {
      throw new StartFailure(
        `${all}, and none became free within ${waitSeconds} seconds. Pause or delete one, then start again.`,
      );
    }
    return this.tasks.note(task, { detail: `${all}: waiting for one to become free.` });
  }
}

const FIND = 'SELECT status, status_detail FROM sandboxes WHERE id = $1';

/** Looks at the sandboxes of starts. */
@Injectable()
export class StartSandboxReader {
  private readonly statement = new NamedStatement<{ status: SandboxRowStatus; status_detail: string | null }>(
    'start_sandbox',
    FIND,
  );

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async find(sandboxId: string): Promise<SandboxSnapshot> {
    const [row] = await this.statement.run(this.dataSource, [sandboxId]);
    return { status: row?.status ?? null, statusDetail: row?.status_detail ?? null };
  }
}

/** How long what another process does with the sandbox may stay unseen. */
const LOOK_MS = 250;
const PLACE_MS = 1_000;

/** Waits until a start's sandbox answers; makes it, or has it resumed, where that is needed. */
@Injectable()
export class SandboxReadiness {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly reader: StartSandboxReader,
    private readonly maker: StartSandboxMaker,
    private readonly changes: SandboxChanges,
  ) {}

  /**
   * @returns the task as it is then, in the same status
   * @throws StartFailure when there will be no sandbox
   * @throws StartSuperseded, the signal's reason
   */
  async untilRunning(first: StartTask, signal: AbortSignal): Promise<StartTask> {
    let task = first;
    for (;;) {
      signal.throwIfAborted();
      const standing = nextSandboxAction(await this.reader.find(task.sandboxId), task.sandboxMade);
      switch (standing.do) {
        case 'go-on':
          return await this.tasks.note(task, { notes: withDetail(task.notes, standing.detail) });
        case 'fail':
          throw new StartFailure(standing.reason);
        case 'wait':
          task = await this.tasks.note(task, { detail: standing.detail });
          await this.changes.wait(task.sandboxId, LOOK_MS, signal);
          break;
        case 'make':
        case 'resume': {
          const outcome = await this.maker[standing.do](task);
          task = outcome.task;
          if (!outcome.placed) {
            await this.changes.wait(task.sandboxId, PLACE_MS, signal);
          }
        }
      }
    }
  }
}

/** What the sandbox says of itself holds the notes that it was made with. */
function withDetail(notes: readonly string[], detail: string | null): string[] {
  return detail === null ? [...notes] : [detail, ...notes.filter((note) => !detail.includes(note))];
}

/** A sandbox that answers, for one step of a start. */
export interface StartTarget {
  /** As it is now. */
  task: StartTask;
  target: RunningSandbox;
  dialect: AgentDialect;
  /** Where conversations work, as its specification says; null when that is not configured any more. */
  specWorkingDir: string | null;
}

/** Finds the agent servers of starts; one that was stopped meanwhile is waited for. */
@Injectable()
export class StartTargets {
  constructor(
    private readonly running: RunningSandboxes,
    private readonly readiness: SandboxReadiness,
    private readonly specs: SandboxSpecs,
  ) {}

  /** @throws StartFailure, StartSuperseded, the signal's reason */
  async find(first: StartTask, signal: AbortSignal): Promise<StartTarget> {
    let task = first;
    for (;;) {
      const target = await this.running.target(task.sandboxId);
      if (target) {
        const spec = this.specs.find(target.specId);
        return { task, target, dialect: agentDialect(spec), specWorkingDir: spec?.workingDir ?? null };
      }
      task = await this.readiness.untilRunning(task, signal);
    }
  }
}

/** What is known of a task's sandbox. */
export interface SandboxSnapshot {
  /** Null: there is no row. */
  status: SandboxRowStatus | null;
  statusDetail: string | null;
}

/** What a start does next about its sandbox. */
export type SandboxNextAction =
  /** `detail`: what of the settings has no effect in it. */
  | { do: 'go-on'; detail: string | null }
  | { do: 'make' }
  | { do: 'resume' }
  | { do: 'wait'; detail: string | null }
  | { do: 'fail'; reason: string };

/** @param made the sandbox was there once: with no row it is gone */
export function nextSandboxAction(
  { status, statusDetail }: SandboxSnapshot,
  made: boolean,
): SandboxNextAction {
  switch (status) {
    case null:
      return made ? { do: 'fail', reason: 'The sandbox has been deleted.' } : { do: 'make' };
    case 'RUNNING':
      return { do: 'go-on', detail: statusDetail };
    case 'STARTING':
      return { do: 'wait', detail: statusDetail };
    case 'PAUSING':
      return { do: 'wait', detail: 'The sandbox is being paused; it is resumed after that.' };
    case 'PAUSED':
      return { do: 'resume' };
    case 'ERROR':
      return { do: 'fail', reason: `The sandbox failed: ${statusDetail ?? 'no cause is known'}` };
    case 'MISSING':
      return { do: 'fail', reason: `The sandbox is MISSING: ${statusDetail ?? 'its files are gone'}` };
    case 'DELETING':
      return { do: 'fail', reason: 'The sandbox is being deleted.' };
  }
}
