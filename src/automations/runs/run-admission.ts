import type { AutomationWork } from '../definitions/automation.repository.js';

type RunLimits = Pick<AutomationWork, 'max_runs_per_day' | 'concurrency'>;

export interface RunCounts {
  active: number;
  /** Made within a day, without those that were skipped. */
  today: number;
  skippedToday: number;
}

interface Admission {
  /** `refuse`: as `skip`, but not even a row is kept, since a flood would make as many as it has events. */
  admission: 'make' | 'replace' | 'skip' | 'refuse';
  reason: string | null;
}

/** Whether a cause makes a run, and what becomes of the ones before. */
export function admit(
  { max_runs_per_day: most, concurrency: { limit, when_busy } }: RunLimits,
  counts: RunCounts,
): Admission {
  const skip = counts.skippedToday >= most ? 'refuse' : 'skip';
  if (counts.today >= most) {
    return { admission: skip, reason: `It has had ${most} runs within a day (max_runs_per_day).` };
  }
  if (counts.active < limit || when_busy === 'queue') {
    return { admission: 'make', reason: null };
  }
  return when_busy === 'replace'
    ? { admission: 'replace', reason: null }
    : { admission: skip, reason: 'It was busy with earlier runs (concurrency).' };
}
