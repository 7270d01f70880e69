import type { AutomationWork } from '../definitions/automation.repository.js';
import type { Trigger } from '../definitions/trigger.dto.js';

export interface RunCounts {
  active: number;
  /** Made within a day, without those that were skipped. */
  today: number;
  skippedToday: number;
  /** What is stored of the runs that wait. */
  waitingBytes: number;
  /** USD. */
  costThisMonth: number;
  /** Those of `today` that the same actor caused. */
  ofActorToday: number;
}

interface Admission {
  /** `refuse`: as `skip`, but not even a row is kept, since a flood would make as many as it has events. */
  admission: 'make' | 'replace' | 'skip' | 'refuse';
  reason: string | null;
}

/** Most runs a day by an account without write access, as anyone may comment in public repositories. */
const RUNS_OF_A_STRANGER = 10;

/** Each keeps what it is going to do, with texts of its event. */
const WAITING_MB = 10;

export const SPENT = "Its runs have cost this month's budget (max_budget_per_month).";

/** Whether a cause makes a run, and what becomes of the ones before. */
export function admit(work: AutomationWork, trigger: Trigger, counts: RunCounts): Admission {
  const { max_runs_per_day: most, max_budget_per_month: budget, concurrency } = work;
  const { limit, when_busy } = concurrency;
  const skip = counts.skippedToday >= most ? 'refuse' : 'skip';
  if (counts.today >= most) {
    const had = most === 1 ? 'a run' : `${most} runs`;
    return { admission: skip, reason: `It has had ${had} within a day (max_runs_per_day).` };
  }
  const isForAnyone = trigger.type === 'event' && trigger.from === 'anyone';
  if (isForAnyone && counts.ofActorToday >= RUNS_OF_A_STRANGER) {
    return { admission: skip, reason: `This account has had ${RUNS_OF_A_STRANGER} runs within a day.` };
  }
  if (counts.costThisMonth >= (budget ?? Infinity)) {
    return { admission: skip, reason: SPENT };
  }
  const isFree = counts.active < limit || when_busy === 'queue';
  if (counts.active >= limit && isFree && counts.waitingBytes >= WAITING_MB * 1_000_000) {
    return { admission: skip, reason: `Its runs that wait take ${WAITING_MB} MB, the most there may be.` };
  }
  return isFree || when_busy === 'replace'
    ? { admission: isFree ? 'make' : 'replace', reason: null }
    : { admission: skip, reason: 'It was busy with earlier runs (concurrency).' };
}
