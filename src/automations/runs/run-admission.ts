export const WHEN_BUSY = ['queue', 'skip', 'replace'] as const;
export type WhenBusy = (typeof WHEN_BUSY)[number];

export interface AutomationLimits {
  maxRunsPerDay: number;
  /** Runs at a time. */
  limit: number;
  whenBusy: WhenBusy;
}

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
export function admit({ limit, maxRunsPerDay, whenBusy }: AutomationLimits, counts: RunCounts): Admission {
  const skip = counts.skippedToday >= maxRunsPerDay ? 'refuse' : 'skip';
  if (counts.today >= maxRunsPerDay) {
    return { admission: skip, reason: `It has had ${maxRunsPerDay} runs within a day (max_runs_per_day).` };
  }
  if (counts.active < limit || whenBusy === 'queue') {
    return { admission: 'make', reason: null };
  }
  return whenBusy === 'replace'
    ? { admission: 'replace', reason: null }
    : { admission: skip, reason: 'It was busy with earlier runs (concurrency).' };
}

export function mayBegin(limit: number, running: number): boolean {
  return running < limit;
}
