export const WEBHOOK_EVENT_TYPES = [
  'conversation.ready',
  'conversation.start_failed',
  'conversation.running',
  'conversation.paused',
  'conversation.waiting_for_confirmation',
  'conversation.finished',
  'conversation.error',
  'conversation.stuck',
  'pull_request.opened',
  'pull_request.round',
  'pull_request.reached',
  'pull_request.gave_up',
  'budget.threshold',
  'automation.run.finished',
] as const;

export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** Includes future types. */
export const EVERY_EVENT = '*';
/** Sent by `POST …/test`, even to endpoints that do not subscribe to it. */
export const TEST_EVENT = 'test';

export interface WebhookEvent {
  type: WebhookEventType;
  /** Ids, facts and why a conversation failed; never a secret. */
  data: Record<string, unknown>;
}

/** What events of a conversation say about it, null where there is nothing to say. */
export interface ConversationReport {
  conversation_id: string;
  sandbox_id: string;
  /** Only where a result was asked for. */
  result: unknown;
  error: { code: string; detail: string } | null;
  tags: Record<string, string>;
  /** USD. */
  cost: number | null;
  repository: string | null;
  /** The newest. */
  pull_request: { number: number; url: string } | null;
}

/** The event for a conversation's new status; null for a status without one. */
export function statusEvent(status: string, report: ConversationReport): WebhookEvent | null {
  const type = WEBHOOK_EVENT_TYPES.find((known) => known === `conversation.${status}`);
  return type === undefined ? null : { type, data: { ...report, execution_status: status } };
}

/** Shares of a budget, each of which is told once. */
const BUDGET_THRESHOLDS = [1, 0.8];

export interface Spending {
  /** USD. */
  cost: number;
  /** USD; null: unlimited. */
  budget: number | null;
}

/** The event for a budget of which more has been spent; null unless that passed a threshold. */
export function budgetEvent(before: Spending, after: Spending, report: object): WebhookEvent | null {
  const threshold = BUDGET_THRESHOLDS.find((share) => !hasReached(before, share) && hasReached(after, share));
  return threshold === undefined
    ? null
    : { type: 'budget.threshold', data: { ...report, threshold, budget: after.budget } };
}

function hasReached({ cost, budget }: Spending, share: number): boolean {
  return budget !== null && cost >= budget * share;
}

/** The body of a delivery, the same bytes in every attempt. */
export function deliveryBody(id: string, { type, data }: { type: string; data: object }, at: Date): string {
  return JSON.stringify({ id, type, timestamp: at.toISOString(), data });
}
