import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '../../common/clock.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { AppConfig } from '../../config/app-config.js';
import { ConversationActionsService } from '../../v1/app-conversations/conversation-actions.service.js';
import { ConversationQueries } from '../../v1/app-conversations/conversation.queries.js';
import { isFinished } from '../../v1/app-conversations/start-task.entity.js';
import { StartTaskQueries } from '../../v1/app-conversations/start-task.queries.js';
import type { AutomationRun } from './automation-run.entity.js';
import { AutomationRunRepository } from './automation-run.repository.js';
import { endOfRun } from './run-outcome.js';

const EVERY_MS = 2_000;
const BATCH = 500;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
const WORKING: readonly unknown[] = ['idle', 'running', 'waiting_for_confirmation'];

/** Ends runs whose conversations are over, pauses those of runs that were stopped, and removes old runs. */
@Injectable()
export class RunSettler extends BackgroundLoop {
  constructor(
    private readonly runs: AutomationRunRepository,
    private readonly conversations: ConversationQueries,
    private readonly startTasks: StartTaskQueries,
    private readonly actions: ConversationActionsService,
    private readonly clock: Clock,
    private readonly config: AppConfig,
  ) {
    super(EVERY_MS, new Logger('Automations'), 'failed to settle runs');
  }

  protected async work(): Promise<void> {
    let batch: AutomationRun[] = [];
    do {
      batch = await this.runs.unsettled(batch.at(-1)?.id ?? BEFORE_ALL, BATCH);
      for (const run of batch) {
        await this.settleAlone(run);
      }
    } while (batch.length === BATCH);
    await this.runs.removeOlderThan(this.config.database.automationRunRetentionSeconds, BATCH);
  }

  /** The runs of other users do not wait for one that fails. */
  private async settleAlone(run: AutomationRun): Promise<void> {
    try {
      await (run.stopPending ? this.stop(run) : this.settle(run));
    } catch (error) {
      this.logger.warn('failed to settle run', { run_id: run.id, error: errorMessage(error) });
    }
  }

  private async settle({ id, userId, conversationIds, startTaskIds, ...run }: AutomationRun): Promise<void> {
    const rows = await this.conversations.findAll(userId, conversationIds);
    const starts = await this.startTasks.batch(userId, startTaskIds ?? []);
    const held = conversationIds.map((each, index) => ({
      conversation: rows.get(each) ?? null,
      start: starts[index] ?? null,
    }));
    const end = endOfRun(run, held, this.clock.now());
    if (end !== null) {
      await this.runs.finish(id, end);
    }
  }

  private async stop({ id, userId, conversationIds }: AutomationRun): Promise<void> {
    const stopped = await Promise.all(conversationIds.map((each) => this.pause(userId, each)));
    if (stopped.every(Boolean)) {
      await this.runs.update({ id }, { stopPending: false });
    }
  }

  /** False while its start is under way. */
  private async pause(userId: string, id: string): Promise<boolean> {
    const start = await this.startTasks.newest(userId, id);
    if (start !== null && !isFinished(start.status)) {
      return false;
    }
    const row = await this.conversations.find(userId, id);
    if (row?.sandbox_status === 'RUNNING' && WORKING.includes(row.execution_status)) {
      await this.actions.pause(userId, id).catch((error: unknown) => {
        // It ended in this moment, or its sandbox did.
        if (!(error instanceof DomainError && ['not_found', 'conflict'].includes(error.kind))) {
          throw error;
        }
      });
    }
    return true;
  }
}
