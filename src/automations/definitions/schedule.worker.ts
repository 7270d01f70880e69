import { Injectable, Logger } from '@nestjs/common';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '../../common/clock.js';
import { nextTime } from '../../common/schedule.js';
import { AutomationRunRepository } from '../runs/automation-run.repository.js';
import { AutomationRepository } from './automation.repository.js';

/** A run is made within 8 s of its minute. */
const EVERY_MS = 2_000;
const BATCH = 50;

/** Makes the runs of schedules, on whichever replica locks them first (docs/adr/0061). */
@Injectable()
export class ScheduleWorker extends BackgroundLoop {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly runs: AutomationRunRepository,
    private readonly clock: Clock,
  ) {
    super(EVERY_MS, new Logger('Automations'), 'failed to make scheduled runs');
  }

  protected async work(): Promise<void> {
    const now = this.clock.now();
    let due: number;
    do {
      due = await this.runs.transaction(async (manager) => {
        const automations = await this.automations.lockDue(manager, new Date(now), BATCH);
        for (const automation of automations) {
          const { id, trigger, nextRunAt } = automation;
          if (trigger.type === 'cron' && nextRunAt !== null) {
            // One for all minutes since the last look, however many were missed.
            await this.runs.make(manager, automation, 'cron', { id: nextRunAt.toISOString() });
            await this.automations.setTimes(manager, id, { nextRunAt: nextTime(trigger, now) });
          }
        }
        return automations.length;
      });
    } while (due === BATCH);
  }
}
