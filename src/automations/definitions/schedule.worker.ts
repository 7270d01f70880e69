import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Clock } from '../../common/clock.js';
import { AutomationRunQueue } from '../runs/automation-run.queue.js';
import { AutomationRunRepository } from '../runs/automation-run.repository.js';
import { filledPrompt } from '../runs/prompt-template.js';
import type { Automation } from './automation.entity.js';
import { AutomationRepository } from './automation.repository.js';
import { nextTime } from './schedule.js';
import { isCron } from './trigger.js';

/** A run is made within 8 s of its minute. */
const EVERY_MS = 2_000;
const BATCH = 50;

/** Makes the runs of schedules, on whichever replica locks them first (docs/adr/0061). */
@Injectable()
export class ScheduleWorker implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Automations');
  private readonly loop = new RepeatedWork(
    EVERY_MS,
    () => this.look(),
    (error) => this.logger.warn('failed to make scheduled runs', { error: errorMessage(error) }),
  );

  constructor(
    private readonly automations: AutomationRepository,
    private readonly runs: AutomationRunRepository,
    private readonly runQueue: AutomationRunQueue,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.loop.stop();
  }

  /** Looks now instead of within seconds. */
  async lookNow(): Promise<void> {
    await this.loop.now();
  }

  private async look(): Promise<void> {
    const now = this.clock.now();
    const isDue = await this.automations.existsDue(new Date(now));
    if (!isDue) {
      return;
    }
    await this.runQueue.prepare();
    let due: number;
    do {
      due = await this.automations.manager.transaction(async (manager) => {
        const automations = await this.automations.lockDue(manager, new Date(now), BATCH);
        for (const automation of automations) {
          await this.makeRun(manager, automation, now);
        }
        return automations.length;
      });
    } while (due === BATCH);
  }

  /** One run for all minutes since the last look, however many were missed. */
  private async makeRun(manager: EntityManager, automation: Automation, now: number): Promise<void> {
    const { trigger, nextRunAt, work } = automation;
    if (!isCron(trigger) || nextRunAt === null) {
      return;
    }
    const prompt = work.prompt === null ? null : filledPrompt(work.prompt, null);
    const cause = { trigger: 'cron', id: nextRunAt.toISOString() } as const;
    const { reason } = await this.runs.make(manager, automation, cause, { ...work, prompt });
    if (reason !== null) {
      this.logger.log('scheduled run skipped', { automation_id: automation.id, reason });
    }
    await this.automations.setTimes(manager, automation.id, { nextRunAt: nextTime(trigger, now) });
  }
}
