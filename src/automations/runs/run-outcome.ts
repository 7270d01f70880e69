import type { ConversationRow } from '../../v1/app-conversations/conversation.queries.js';
import type { StartTaskRow } from '../../v1/app-conversations/start-task.queries.js';
import type { AutomationWork } from '../definitions/automation.entity.js';
import type { AutomationRun } from './automation-run.entity.js';
import type { RunEnd } from './automation-run.repository.js';

type BoundedRun = Pick<AutomationRun, 'startedAt'> & {
  work: Pick<AutomationWork, 'timeout' | 'max_budget_per_run'>;
};

/** A conversation of a run as it is now; null for what is not there. */
export interface ConversationOfRun {
  start: Pick<StartTaskRow, 'status' | 'detail'> | null;
  conversation:
    | (Pick<ConversationRow, 'execution_status' | 'error' | 'sandbox_status'> & {
        metrics: { accumulated_cost: number } | null;
      })
    | null;
}

/** What a run's conversations make of it; null while one of them goes on within the run's bounds. */
export function endOfRun(
  { startedAt, work: { timeout, max_budget_per_run: budget } }: BoundedRun,
  conversations: readonly ConversationOfRun[],
  now: number,
): RunEnd | null {
  const costs = conversations.flatMap(({ conversation }) => conversation?.metrics?.accumulated_cost ?? []);
  const cost = costs.length === 0 ? null : costs.reduce((sum, each) => sum + each, 0);
  const failures = conversations.map(failureOf);
  if (!failures.includes(null)) {
    const detail = failures.find((failure) => failure !== '') ?? null;
    return { status: detail === null ? 'COMPLETED' : 'FAILED', detail, cost, stops: false };
  }
  if (budget !== null && (cost ?? 0) > budget) {
    return stopped(`cost more than ${budget} USD (max_budget_per_run)`, cost);
  }
  const isLate = timeout !== null && startedAt !== null && now - startedAt.getTime() > timeout * 1000;
  return isLate ? stopped(`took longer than ${timeout} s (timeout)`, cost) : null;
}

function stopped(why: string, cost: number | null): RunEnd {
  return { status: 'FAILED', detail: `It ${why}, and was stopped.`, cost, stops: true };
}

/** Empty where nothing went wrong; null while it goes on. */
function failureOf({ start, conversation }: ConversationOfRun): string | null {
  if (start?.status === 'ERROR') {
    return start.detail || 'Its conversation could not be started.';
  }
  if (conversation === null) {
    return start === null || start.status === 'READY' ? 'Its conversation was deleted.' : null;
  }
  const { execution_status: status, error, sandbox_status: sandbox } = conversation;
  switch (status) {
    case 'finished':
      return '';
    case 'error':
    case 'stuck':
      return error === null ? `Its conversation ended with ${status}.` : `${error.code}: ${error.detail}`;
    default:
      return sandbox === null || ['ERROR', 'MISSING', 'DELETING'].includes(sandbox)
        ? 'The sandbox of its conversation is gone.'
        : null;
  }
}
