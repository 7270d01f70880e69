import type { ConversationRow } from '../../v1/app-conversations/conversation.queries.js';
import type { StartTaskRow } from '../../v1/app-conversations/start-task.queries.js';
import type { AutomationWork } from '../definitions/automation.entity.js';
import type { RunEnd } from './automation-run.repository.js';

/** A conversation of a run as it is now; null for what is not there. */
export interface ConversationOfRun {
  start: Pick<StartTaskRow, 'status' | 'detail'> | null;
  conversation:
    | (Pick<ConversationRow, 'execution_status' | 'error' | 'sandbox_status'> & {
        metrics: { accumulated_cost: number } | null;
      })
    | null;
}

interface RunBounds {
  startedAt: Date | null;
  work: Pick<AutomationWork, 'timeout' | 'max_budget_per_run'>;
}

type ConversationEnd = { failure: string | null } | null;

/** What a run's conversations make of it; null while one of them goes on within the run's bounds. */
export function endOfRun(
  { startedAt, work }: RunBounds,
  conversations: readonly ConversationOfRun[],
  now: number,
): RunEnd | null {
  const ends = conversations.map(endOf);
  const cost = costOf(conversations);
  if (ends.every((end) => end !== null)) {
    const failure = ends.find((end) => end.failure !== null)?.failure ?? null;
    return { status: failure === null ? 'COMPLETED' : 'FAILED', detail: failure, cost, stops: false };
  }
  const { timeout, max_budget_per_run: budget } = work;
  const isOver = budget !== null && (cost ?? 0) > budget;
  const isLate = timeout !== null && startedAt !== null && now - startedAt.getTime() > timeout * 1000;
  if (!isOver && !isLate) {
    return null;
  }
  const bound = isOver
    ? `cost more than ${budget} USD (max_budget_per_run)`
    : `took longer than ${timeout} s (timeout)`;
  return { status: 'FAILED', detail: `It ${bound}, and was stopped.`, cost, stops: true };
}

function endOf({ start, conversation }: ConversationOfRun): ConversationEnd {
  if (start?.status === 'ERROR') {
    return { failure: start.detail ?? 'Its conversation could not be started.' };
  }
  if (conversation === null) {
    return start === null || start.status === 'READY' ? { failure: 'Its conversation was deleted.' } : null;
  }
  const { execution_status: status, error, sandbox_status: sandbox } = conversation;
  switch (status) {
    case 'finished':
      return { failure: null };
    case 'error':
    case 'stuck':
      return {
        failure: error === null ? `Its conversation ended with ${status}.` : `${error.code}: ${error.detail}`,
      };
    default:
      return sandbox === null || ['ERROR', 'MISSING', 'DELETING'].includes(sandbox)
        ? { failure: 'The sandbox of its conversation is gone.' }
        : null;
  }
}

function costOf(conversations: readonly ConversationOfRun[]): number | null {
  const costs = conversations.flatMap(({ conversation }) => conversation?.metrics?.accumulated_cost ?? []);
  return costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0);
}
