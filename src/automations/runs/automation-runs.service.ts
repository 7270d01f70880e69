import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { AuditRepository } from '../../audit/audit.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import type { Owner } from '../current-owner.js';
import { AutomationRepository, type ListPlace } from '../definitions/automation.repository.js';
import { unknownAutomation } from '../definitions/automations.service.js';
import { AutomationRunQueue } from './automation-run.queue.js';
import { AutomationRunRepository } from './automation-run.repository.js';
import { AutomationRun } from './automation-run.entity.js';
import { filledPrompt } from './prompt-template.js';

export interface RunPage {
  runs: AutomationRun[];
  total: number;
  statusCounts: Record<string, number>;
}

const RETRY_AFTER_SECONDS = 3_600;

/** What owners do with runs. Methods throw DomainError not_found for what is not the owner's. */
@Injectable()
export class AutomationRunsService {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly runs: AutomationRunRepository,
    private readonly runQueue: AutomationRunQueue,
    private readonly audit: AuditRepository,
  ) {}

  /** Makes a run by hand, also of an inactive automation. @throws DomainError rate_limited beyond the day's maximum */
  async dispatch(owner: Owner, automationId: string, key: string | null): Promise<AutomationRun> {
    await this.runQueue.prepare();
    return this.runs.manager.transaction(async (manager) => {
      const automation = await this.automations.lock(manager, { ...owner, id: automationId });
      if (automation === null) {
        throw unknownAutomation();
      }
      const { prompt } = automation.work;
      const work = { ...automation.work, prompt: prompt === null ? null : filledPrompt(prompt, null) };
      const cause = { trigger: 'manual', id: key ?? randomUUID() } as const;
      const { run, reason, isRepeated } = await this.runs.make(manager, automation, cause, work);
      if (run === null) {
        throw new DomainError('rate_limited', 'rate_limited', reason ?? 'It has had too many runs.', {
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        });
      }
      if (!isRepeated) {
        await this.audit.append(manager, {
          action: 'automation.dispatch',
          resourceId: automation.id,
          ownerId: owner.userId,
          details: { run_id: run.id },
        });
      }
      return run;
    });
  }

  async page(owner: Owner, automationId: string, place: ListPlace): Promise<RunPage> {
    const automation = await this.automations.findOf(owner, automationId);
    if (automation === null) {
      throw unknownAutomation();
    }
    const [[runs, total], statusCounts] = await Promise.all([
      this.runs.page(automation.id, place),
      this.runs.statusCounts(automation.id),
    ]);
    return { runs, total, statusCounts };
  }

  /** Its conversations are paused soon. @throws DomainError conflict for a run that is over */
  async cancel({ userId }: Owner, id: string): Promise<AutomationRun> {
    await this.runQueue.prepare();
    return this.runs.manager.transaction(async (manager) => {
      const run = await this.runs.findOneBy({ id, userId });
      if (run === null) {
        throw new DomainError('not_found', 'not_found', 'There is no run with this id.');
      }
      const end = { status: 'CANCELLED', detail: 'It was cancelled.', cost: null, stops: true } as const;
      if (!(await this.runs.end(manager, run.id, end))) {
        throw new DomainError('conflict', 'conflict', 'This run is over.');
      }
      await this.audit.append(manager, {
        action: 'automation.cancel_run',
        resourceId: run.automationId,
        ownerId: userId,
        details: { run_id: run.id },
      });
      return manager.findOneByOrFail(AutomationRun, { id: run.id });
    });
  }
}
