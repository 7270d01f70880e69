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
  conversations.watch({
    added: (conversation) => {
      webhooks?.conversation(conversation.info());
      conversation.log.onAppend((event) => {
        activity.touch();
        webhooks?.event(conversation.id, event);
        // After a run clients wait for its last word: the whole state, once all else was told.
        if (event.kind === 'ConversationStateUpdateEvent' && event.key === 'execution_status') {
          sockets.tellState(conversation);
        }
      });
    },
    changed: (conversation) => {
      webhooks?.conversation(conversation.info());
    },
    removed: (info) => {
      webhooks?.conversation(info);
      sockets.drop(info.id);
    },
  });
}
