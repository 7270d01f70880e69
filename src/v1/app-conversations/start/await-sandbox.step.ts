import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import {
  type RunningSandbox,
  RunningSandboxQueries,
  SandboxQueries,
  type SandboxSnapshot,
} from '../../sandboxes/sandbox.queries.js';
import { agentDialect, type AgentDialect } from '../agent-request/agent-settings.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { StartFailure } from './start-failure.js';
import { StartSandboxProvisioner } from './start-sandbox.provisioner.js';

/** Lets starts wait for changes of their sandboxes that this process makes. */
@Injectable()
export class SandboxChangeWaiter {
  private readonly waiting = new Map<string, Set<AbortController>>();

  constructor(events: SandboxEvents) {
    events.onRunning((id) => this.emit(id));
    events.onStopped((id) => this.emit(id));
  }

  /**
   * Waits until this process changes the sandbox, or until the timeout; the caller then reads its status.
   *
   * @throws the signal's reason when it aborts
   */
  async wait(sandboxId: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const changed = new AbortController();
    const waiting = this.waiting.get(sandboxId) ?? new Set();
    this.waiting.set(sandboxId, waiting.add(changed));
    try {
      await delay(timeoutMs, undefined, { signal: AbortSignal.any([signal, changed.signal]) });
    } catch (error) {
      if (!changed.signal.aborted) {
        throw error;
      }
    } finally {
      waiting.delete(changed);
      if (waiting.size === 0) {
        this.waiting.delete(sandboxId);
      }
    }
    signal.throwIfAborted();
  }

  private emit(sandboxId: string): void {
    this.waiting.get(sandboxId)?.forEach((changed) => changed.abort());
  }
}

/** How long a change that another process makes to the sandbox may stay unseen. */
const POLL_MS = 250;
const QUOTA_POLL_MS = 1_000;

/** WAITING_FOR_SANDBOX: waits until the sandbox runs; has it created or resumed where that is needed. */
@Injectable()
export class AwaitSandboxStep {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly sandboxes: SandboxQueries,
    private readonly provisioner: StartSandboxProvisioner,
    private readonly changes: SandboxChangeWaiter,
  ) {}

  /**
   * @returns the task as it is then, in the same status
   * @throws StartFailure when there will be no sandbox
   * @throws StartSuperseded, the signal's reason
   */
  async run(first: StartTask, signal: AbortSignal): Promise<StartTask> {
    let task = first;
    for (;;) {
      signal.throwIfAborted();
      const next = nextSandboxAction(await this.sandboxes.snapshot(task.sandboxId), task.sandboxMade);
      switch (next.action) {
        case 'go-on':
          return await this.tasks.update(task, { notes: withDetail(task.notes, next.detail) });
        case 'fail':
          throw new StartFailure('sandbox', next.reason);
        case 'wait':
          task = await this.tasks.update(task, { detail: next.detail });
          await this.changes.wait(task.sandboxId, POLL_MS, signal);
          break;
        case 'create':
        case 'resume': {
          const attempt =
            next.action === 'create'
              ? await this.provisioner.createFor(task)
              : await this.provisioner.resumeFor(task);
          task = attempt.task;
          if (!attempt.hasQuota) {
            await this.changes.wait(task.sandboxId, QUOTA_POLL_MS, signal);
          }
        }
      }
    }
  }
}

/** What the workflow hands to a step that works inside the sandbox. */
export interface StartContext {
  /** As it is now. */
  task: StartTask;
  /** The sandbox, with the address of its agent server. */
  sandbox: RunningSandbox;
  dialect: AgentDialect;
  /** The working folder of the sandbox's specification; null when that is not configured any more. */
  specWorkingDir: string | null;
}

/** Reads the context of a step anew; if the sandbox was stopped meanwhile, waits until it runs again. */
@Injectable()
export class StartContextReader {
  constructor(
    private readonly running: RunningSandboxQueries,
    private readonly awaitSandbox: AwaitSandboxStep,
    private readonly specs: SandboxSpecs,
  ) {}

  /** @throws StartFailure, StartSuperseded, the signal's reason */
  async read(first: StartTask, signal: AbortSignal): Promise<StartContext> {
    let task = first;
    for (;;) {
      const sandbox = await this.running.target(task.sandboxId);
      if (sandbox) {
        const spec = this.specs.find(sandbox.specId);
        return { task, sandbox, dialect: agentDialect(spec), specWorkingDir: spec?.workingDir ?? null };
      }
      task = await this.awaitSandbox.run(task, signal);
    }
  }
}

/** The detail of a sandbox repeats the notes that it was created with. */
function withDetail(notes: readonly string[], detail: string | null): string[] {
  return detail === null ? [...notes] : [detail, ...notes.filter((note) => !detail.includes(note))];
}

/** What a start does next about its sandbox. */
export type SandboxNextAction =
  /** `detail`: which settings have no effect in it. */
  | { action: 'go-on'; detail: string | null }
  | { action: 'create' }
  | { action: 'resume' }
  | { action: 'wait'; detail: string | null }
  | { action: 'fail'; reason: string };

/** @param existed the sandbox was created before: without a row it is gone */
export function nextSandboxAction(
  { status, statusDetail }: SandboxSnapshot,
  existed: boolean,
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
      return { action: 'resume' };
    case 'ERROR':
      return { action: 'fail', reason: `The sandbox failed: ${statusDetail ?? 'no cause is known'}` };
    case 'MISSING':
      return { action: 'fail', reason: `The sandbox is MISSING: ${statusDetail ?? 'its files are gone'}` };
    case 'DELETING':
      return { action: 'fail', reason: 'The sandbox is being deleted.' };
  }
}
