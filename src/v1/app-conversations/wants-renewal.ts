import type { ConversationRow } from './conversation-row.js';

/**
 * Whether a conversation has to be given the user's settings anew before its agent is asked for anything: it ended with
 * an error, or has spent its budget. A key or a limit may be to blame that is another one by now.
 */
export function wantsRenewal({
  execution_status: status,
  metrics,
}: Pick<ConversationRow, 'execution_status' | 'metrics'>): boolean {
  const isSpent =
    metrics !== null &&
    metrics.max_budget_per_task !== null &&
    metrics.accumulated_cost >= metrics.max_budget_per_task;
  return status === 'error' || isSpent;
}
