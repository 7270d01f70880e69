import type { NewEvent } from '../agent-engine.js';

/** What a user sees when something does not go on, or not as configured. */
export function conversationFailure(code: string, detail: string): NewEvent {
  return { kind: 'ConversationErrorEvent', source: 'environment', code, detail };
}
