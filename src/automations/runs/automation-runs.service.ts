import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { AuditRepository } from '../../audit/audit.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { found, type Owner } from '../current-owner.js';
import { AutomationRepository } from '../definitions/automation.repository.js';
import { type ListPlace, newestFirst } from '../owned.repository.js';
import { AutomationRunRepository } from './automation-run.repository.js';
import { AutomationRun } from './automation-run.entity.js';

export interface RunPage {
  runs: AutomationRun[];
  total: number;
  status_counts: Record<string, number>;
}

/** What owners do with runs. Methods throw DomainError not_found for what is not the owner's. */
@Injectable()
export class AutomationRunsService {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly runs: AutomationRunRepository,
    private readonly audit: AuditRepository,
  ) {}

  /** Makes a run by hand, also of an inactive automation. @throws DomainError rate_limited beyond the day's maximum */
  async dispatch(owner: Owner, automationId: string, key: string | null): Promise<AutomationRun> {
    await this.runs.prepare();
    return this.runs.manager.transaction(async (manager) => {
      const locked = await this.automations.lock(manager, { ...owner, id: automationId });
      const automation = found(locked, 'automation');
      const cause = { trigger: 'manual', id: key ?? randomUUID() } as const;
      const { run, reason, isRepeated } = await this.runs.make(manager, automation, cause);
      if (run === null) {
        const detail = reason ?? 'It has had too many runs.';
        throw new DomainError('rate_limited', 'rate_limited', detail, { retryAfterSeconds: 3_600 });
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
    await this.automations.getOf(owner, automationId);
    const [[runs, total], status_counts] = await Promise.all([
      newestFirst(this.runs, { automationId }, place),
      this.runs.statusCounts(automationId),
    ]);
    return { runs, total, status_counts };
  }

  /** Its conversations are paused soon. @throws DomainError conflict for a run that is over */
  async cancel({ userId }: Owner, id: string): Promise<AutomationRun> {
    await this.runs.prepare();
    return this.runs.manager.transaction(async (manager) => {
      const run = found(await manager.findOneBy(AutomationRun, { id, userId }), 'run');
      if (!(await this.runs.end(manager, run.id, { status: 'CANCELLED', detail: 'It was cancelled.' }))) {
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
