import type { ConversationStatus, MetricsSnapshot } from '../../../agent-protocol/conversation-info.js';

/** What was observed of a conversation's state; members that were not seen are absent. */
export interface ObservedState {
  executionStatus?: ConversationStatus;
  metrics?: MetricsSnapshot;
  title?: string;
}
