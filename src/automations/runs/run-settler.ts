import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Clock } from '../../common/clock.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { AppConfig } from '../../config/app-config.js';
import { ConversationActionsService } from '../../v1/app-conversations/conversation-actions.service.js';
import {
  ConversationQueries,
  type ConversationRow,
} from '../../v1/app-conversations/conversation.queries.js';
import { StartTaskQueries, type StartTaskRow } from '../../v1/app-conversations/start-task.queries.js';
import { AutomationRunQueue } from './automation-run.queue.js';
import { AutomationRunRepository } from './automation-run.repository.js';
import type { AutomationRun } from './automation-run.entity.js';
import { endOfRun } from './run-outcome.js';

const EVERY_MS = 2_000;
const BATCH = 500;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
const PRUNE_EVERY_MS = 3_600_000;
const PRUNE_BATCH = 1_000;
const WORKING: readonly unknown[] = ['idle', 'running', 'waiting_for_confirmation'];

/** Ends runs whose conversations are over, pauses those of runs that were stopped, and removes old runs. */
@Injectable()
export class RunSettler implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Automations');
  private readonly settling = new RepeatedWork(EVERY_MS, () => this.settle(), report(this.logger, 'settle'));
  private readonly pruning = new RepeatedWork(
    PRUNE_EVERY_MS,
    () => this.prune(),
    report(this.logger, 'prune'),
  );

  constructor(
    private readonly runs: AutomationRunRepository,
    private readonly runQueue: AutomationRunQueue,
    private readonly conversations: ConversationQueries,
    private readonly startTasks: StartTaskQueries,
    private readonly actions: ConversationActionsService,
    private readonly clock: Clock,
    private readonly config: AppConfig,
  ) {}

  onApplicationBootstrap(): void {
    this.settling.start();
    this.pruning.start();
  }

  async onModuleDestroy(): Promise<void> {
    await Promise.all([this.settling.stop(), this.pruning.stop()]);
  }

  /** Looks now instead of within seconds. */
  async settleNow(): Promise<void> {
    await this.settling.now();
  }

  /** Removes now instead of within the hour. */
  async prune(): Promise<void> {
    let removed: number;
    do {
      removed = await this.runs.removeOlderThan(
        this.config.database.automationRunRetentionSeconds,
        PRUNE_BATCH,
      );
    } while (removed === PRUNE_BATCH);
  }

  private async settle(): Promise<void> {
    let batch: AutomationRun[];
    let last = BEFORE_ALL;
    do {
      batch = await this.runs.unsettled(last, BATCH);
      for (const run of batch) {
        await this.settleAlone(run);
      }
      last = batch.at(-1)?.id ?? last;
    } while (batch.length === BATCH);
  }

  /** The runs of other users do not wait for one that fails. */
  private async settleAlone(run: AutomationRun): Promise<void> {
    try {
      await (run.stopPending ? this.stop(run) : this.settleOne(run));
    } catch (error) {
      this.logger.warn('failed to settle run', { run_id: run.id, error: errorMessage(error) });
    }
  }

  private async settleOne(run: AutomationRun): Promise<void> {
    const rows = await this.conversations.findAll(run.userId, run.conversationIds);
    const starts = await this.startTasks.batch(run.userId, run.startTaskIds ?? []);
    const now = run.conversationIds.map((id, index) => ({
      conversation: rows.get(id) ?? null,
      start: starts[index] ?? null,
    }));
    const end = endOfRun(run, now, this.clock.now());
    if (end !== null) {
      await this.runQueue.prepare();
      await this.runs.manager.transaction(
        async (manager) => void (await this.runs.end(manager, run.id, end)),
      );
    }
  }

  private async stop(run: AutomationRun): Promise<void> {
    const stopped = await Promise.all(run.conversationIds.map((id) => this.pause(run.userId, id)));
    if (stopped.every(Boolean)) {
      await this.runs.setStopped(run.id);
    }
  }

  /** False while its start is under way. */
  private async pause(userId: string, id: string): Promise<boolean> {
    const [row, { items }] = await Promise.all([
      this.conversations.find(userId, id),
      this.startTasks.search(userId, { conversationId: id }, { order: 'CREATED_AT_DESC', limit: 1 }),
    ]);
    if (isStarting(items[0])) {
      return false;
    }
    if (row !== null && mayWork(row)) {
      try {
        await this.actions.pause(userId, id);
      } catch (error) {
        // It ended in this moment, or its sandbox did.
        if (!(error instanceof DomainError && ['not_found', 'conflict'].includes(error.kind))) {
          throw error;
        }
      }
    }
    return true;
  }
}

function isStarting(start: StartTaskRow | undefined): boolean {
  return start !== undefined && !['READY', 'ERROR'].includes(start.status);
}

function mayWork({ execution_status, sandbox_status }: ConversationRow): boolean {
  return WORKING.includes(execution_status) && sandbox_status === 'RUNNING';
}

function report(logger: Logger, verb: string): (error: unknown) => void {
  return (error) => logger.warn(`failed to ${verb} runs`, { error: errorMessage(error) });
}
