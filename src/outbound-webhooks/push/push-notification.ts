import type { WebhookEvent, WebhookEventType } from '../webhook-event.js';

export const PUSH_KINDS = ['waiting', 'finished', 'failed', 'pull_request'] as const;

export type PushKind = (typeof PUSH_KINDS)[number];

/** What a notification says: a title and a state, nothing that an agent or a tool has written. */
export interface PushNotification {
  kind: PushKind;
  title: string;
  body: string;
  /** Below the address of the service. */
  path: string;
  /** A later one about the same takes the place of one that has not arrived. */
  topic: string;
}

const KINDS: Partial<Record<WebhookEventType, [PushKind, string]>> = {
  'conversation.waiting_for_confirmation': ['waiting', 'Waits for you'],
  'conversation.finished': ['finished', 'Finished'],
  'conversation.error': ['failed', 'Failed'],
  'conversation.stuck': ['failed', 'Failed'],
  'conversation.start_failed': ['failed', 'Failed to start'],
  'pull_request.reached': ['pull_request', 'The pull request has reached its goal.'],
};
const MAX_TITLE = 200;
/** Push services take 32 letters. */
const MAX_TOPIC = 32;

/** Returns null for an event that causes no notification. */
export function notificationOf({ type, data, title }: WebhookEvent): PushNotification | null {
  const [kind, words] = KINDS[type] ?? [];
  if (kind === undefined || words === undefined) {
    return null;
  }
  const id = String(data['conversation_id']);
  const goal = [data['repository'], `#${Number(data['number'])}:`, data['reason'] ?? words].join(' ');
  return {
    kind,
    title: Array.from(title ?? `Conversation ${id.slice(0, 5)}`)
      .slice(0, MAX_TITLE)
      .join(''),
    body: kind === 'pull_request' ? goal : words,
    path: type === 'conversation.start_failed' ? '/console/conversations' : `/console/conversations/${id}`,
    topic: id.slice(0, MAX_TOPIC),
  };
}
