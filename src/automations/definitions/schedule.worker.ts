import { Injectable, Logger } from '@nestjs/common';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import { nextTime } from '@slipway/common/schedule.js';
import { AutomationRunRepository } from '../runs/automation-run.repository.js';
import { type Automation, AutomationRepository } from './automation.repository.js';

/** Finds new schedules: a run is made within 8 s of its minute. */
const EVERY_MS = 5_000;
const BATCH = 50;

/** Makes the runs of schedules, on whichever replica locks their automation first (docs/adr/0061). */
@Injectable()
export class ScheduleWorker extends BackgroundLoop {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly runs: AutomationRunRepository,
    private readonly clock: Clock,
  ) {
    super(EVERY_MS, new Logger('Automations'), 'failed to make scheduled runs');
  }

  protected async work(): Promise<number> {
    for (;;) {
      const now = this.clock.now();
      const soonest = await this.automations.scheduled(BATCH);
      const due = soonest.filter((automation) => isDue(automation, now));
      for (const { id } of due) {
        await this.makeRun(id, now);
      }
      if (due.length < BATCH) {
        const next = soonest[due.length]?.nextRunAt?.getTime() ?? Infinity;
        return Math.min(next - now, EVERY_MS);
      }
    }
  }

  /** Unless another replica has made it meanwhile. */
  private async makeRun(id: string, now: number): Promise<void> {
    await this.runs.transaction(async (manager) => {
      const automation = await this.automations.lock(manager, { id });
      if (automation?.nextRunAt && isDue(automation, now) && automation.trigger.type === 'cron') {
        const { trigger, nextRunAt } = automation;
        // One for all minutes since the last look, however many were missed.
        await this.runs.make(manager, automation, 'cron', { id: nextRunAt.toISOString() });
        await this.automations.setTimes(manager, id, { nextRunAt: nextTime(trigger, now) });
      }
    });
  }
}

function isDue({ nextRunAt }: Pick<Automation, 'nextRunAt'>, now: number): boolean {
  return nextRunAt !== null && nextRunAt.getTime() <= now;
}
