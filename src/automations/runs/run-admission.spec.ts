import { describe, expect, it } from '@jest/globals';
import { admit, type AutomationLimits, mayBegin, type RunCounts } from './run-admission.js';

const LIMITS: AutomationLimits = { maxRunsPerDay: 10, limit: 2, whenBusy: 'queue' };
const COUNTS: RunCounts = { active: 0, today: 0, skippedToday: 0 };

describe('a cause', () => {
  it.each<[string, Partial<AutomationLimits>, Partial<RunCounts>, string]>([
    ['makes a run', {}, {}, 'make'],
    ['makes one beside others', {}, { active: 1, today: 1 }, 'make'],
    ['makes one that waits while it is busy', {}, { active: 2 }, 'make'],
    ['is skipped while it is busy', { whenBusy: 'skip' }, { active: 2 }, 'skip'],
    ['is not skipped beside fewer than may run', { whenBusy: 'skip' }, { active: 1 }, 'make'],
    ['replaces a run', { whenBusy: 'replace' }, { active: 2 }, 'replace'],
    ['is skipped at the maximum of the day', {}, { today: 10 }, 'skip'],
    ['replaces none at the maximum of the day', { whenBusy: 'replace' }, { active: 2, today: 10 }, 'skip'],
    ['is not even kept after as many skipped ones', {}, { today: 10, skippedToday: 10 }, 'refuse'],
    ['is not even kept while busy', { whenBusy: 'skip' }, { active: 2, skippedToday: 10 }, 'refuse'],
  ])('%s', (_what, limits, counts, admission) => {
    const result = admit({ ...LIMITS, ...limits }, { ...COUNTS, ...counts });
    expect(result.admission).toBe(admission);
    expect(result.reason === null).toBe(['make', 'replace'].includes(admission));
  });
});

it.each([
  [1, 0, true],
  [1, 1, false],
  [2, 1, true],
  [1, 3, false],
])('with a limit of %d and %d that run, the next one may begin: %s', (limit, running, may) => {
  expect(mayBegin(limit, running)).toBe(may);
});
