import type { Activity } from './activity.js';
import type { Conversations } from './conversations/conversations.js';
import type { WebhookSender } from './webhooks/webhook-sender.js';

export interface WatchOptions {
  conversations: Conversations;
  webhooks: WebhookSender | null;
  activity: Activity;
}

/** Tells webhooks what happens to conversations, and notes that something does. */
export function watchConversations({ conversations, webhooks, activity }: WatchOptions): void {
  conversations.watch({
    added: (conversation) => {
      webhooks?.conversation(conversation.info());
      conversation.log.onAppend((event) => {
        activity.touch();
        webhooks?.event(conversation.id, event);
      });
    },
    changed: (conversation) => {
      webhooks?.conversation(conversation.info());
    },
    removed: (info) => {
      webhooks?.conversation(info);
    },
  });
}
