import { describe, expect, it } from '@jest/globals';
import type { Trigger } from '../definitions/trigger.dto.js';
import { Automation } from '../definitions/automation.repository.js';
import type { WhenBusy } from '../definitions/automation.dto.js';
import { admit, type RunCounts } from './run-admission.js';

const COUNTS: RunCounts = {
  active: 0,
  today: 0,
  skippedToday: 0,
  waitingBytes: 0,
  costThisMonth: 0,
  ofActorToday: 0,
};

const DAILY: Trigger = { type: 'cron', schedule: '0 9 * * *', timezone: 'UTC' };

describe('a cause', () => {
  it.each<[string, WhenBusy, Partial<RunCounts>, string, RegExp?]>([
    ['makes a run', 'queue', {}, 'make'],
    ['makes one beside others', 'queue', { active: 1, today: 1 }, 'make'],
    ['makes one that waits while it is busy', 'queue', { active: 2 }, 'make'],
    ['is skipped when those that wait are large', 'queue', { active: 2, waitingBytes: 1e7 }, 'skip', /10 MB/],
    ['makes one beside large ones when it is free', 'queue', { active: 1, waitingBytes: 1e7 }, 'make'],
    ['replaces large ones', 'replace', { active: 2, waitingBytes: 1e7 }, 'replace'],
    ['is skipped while it is busy', 'skip', { active: 2 }, 'skip', /busy/],
    ['is not skipped beside fewer than may run', 'skip', { active: 1 }, 'make'],
    ['replaces a run', 'replace', { active: 2 }, 'replace'],
    ['is skipped at the maximum of the day', 'queue', { today: 10 }, 'skip', /10 runs .*max_runs_per_day/],
    ['makes one below the budget of the month', 'queue', { costThisMonth: 4.9 }, 'make'],
    ['is skipped at the budget of the month', 'queue', { costThisMonth: 5 }, 'skip', /budget/],
    ['replaces none at the maximum of the day', 'replace', { active: 2, today: 10 }, 'skip'],
    ['is not even kept after as many skipped ones', 'queue', { today: 10, skippedToday: 10 }, 'refuse'],
    ['is not even kept while busy', 'skip', { active: 2, skippedToday: 10 }, 'refuse', /busy/],
  ])('%s', (_what, when_busy, counts, admission, why = /./) => {
    const limits = { max_runs_per_day: 10, max_budget_per_month: 5, concurrency: { limit: 2, when_busy } };
    const result = admit({ ...new Automation().work, ...limits }, DAILY, { ...COUNTS, ...counts });
    expect(result.admission).toBe(admission);
    const isMade = ['make', 'replace'].includes(admission);
    expect(result.reason).toEqual(isMade ? null : expect.stringMatching(why));
  });

  it.each([
    ['writers', 10, 'make'],
    ['anyone', 9, 'make'],
    ['anyone', 10, 'skip'],
  ] as const)('for %s, of an account that has had %s runs, is for: %s', (from, ofActorToday, admission) => {
    const trigger: Trigger = { type: 'event', source: 'github', on: '*', from };
    expect(admit(new Automation().work, trigger, { ...COUNTS, today: 10, ofActorToday }).admission).toBe(
      admission,
    );
  });
});
