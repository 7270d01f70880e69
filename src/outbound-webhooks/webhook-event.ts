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

/** The event for a conversation's new status; null for a status without one. */
export function statusEvent(
  status: string,
  conversation: { conversationId: string; sandboxId: string; error: object | null },
): WebhookEvent | null {
  const type = WEBHOOK_EVENT_TYPES.find((known) => known === `conversation.${status}`);
  return type === undefined
    ? null
    : {
        type,
        data: {
          conversation_id: conversation.conversationId,
          sandbox_id: conversation.sandboxId,
          execution_status: status,
          ...(conversation.error && { error: conversation.error }),
        },
      };
}

/** The body of a delivery, the same bytes in every attempt. */
export function deliveryBody(id: string, { type, data }: { type: string; data: object }, at: Date): string {
  return JSON.stringify({ id, type, timestamp: at.toISOString(), data });
}
