import type { Activity } from './activity.js';
import type { Conversations } from './conversations/conversations.js';
import type { Sockets } from './sockets/sockets.js';
import type { WebhookSender } from './webhooks/webhook-sender.js';

export interface WatchOptions {
  conversations: Conversations;
  sockets: Sockets;
  webhooks: WebhookSender | null;
  activity: Activity;
}

/** Tells sockets and webhooks what happens to conversations. */
export function watchConversations({ conversations, sockets, webhooks, activity }: WatchOptions): void {
  const statuses = new Map<string, string>();
  conversations.watch({
    added: (conversation) => {
      statuses.set(conversation.id, conversation.record.status);
      webhooks?.conversation(conversation.info());
      conversation.log.onAppend((event) => {
        activity.touch();
        webhooks?.event(conversation.id, event);
      });
    },
    changed: (conversation) => {
      const { status } = conversation.record;
      webhooks?.conversation(conversation.info());
      if (statuses.get(conversation.id) !== status) {
        statuses.set(conversation.id, status);
        sockets.tellState(conversation);
      }
    },
    removed: (info) => {
      statuses.delete(info.id);
      webhooks?.conversation(info);
      sockets.drop(info.id);
    },
  });
}
