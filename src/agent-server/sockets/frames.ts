import { randomUUID } from 'node:crypto';
import type { ConversationInfo } from '../../agent-protocol/conversation.js';
import { jsonAt, parseJson } from '../../common/json-access.js';
import { nextTimestamp } from '../event-log.js';

/** The full state of a conversation, as the event that clients wait for after each run. */
export function stateFrame(info: ConversationInfo): string {
  return JSON.stringify({
    kind: 'ConversationStateUpdateEvent',
    ...identity(),
    source: 'environment',
    key: 'full_state',
    value: info,
  });
}

/** Tells a client that its frame was invalid or could not be executed. */
export function errorFrame(code: string, detail: string): string {
  return JSON.stringify({ kind: 'ServerErrorEvent', ...identity(), source: 'environment', code, detail });
}

/** The key in a client's first frame, `{"type":"auth","session_api_key":"…"}`. */
export function keyInFrame(frame: string): string | undefined {
  const message = parseJson(frame);
  const key = jsonAt(message, 'session_api_key');
  return isAuthFrame(message) && typeof key === 'string' ? key : undefined;
}

export function isAuthFrame(message: unknown): boolean {
  return jsonAt(message, 'type') === 'auth';
}

function identity(): { id: string; timestamp: string } {
  return { id: randomUUID(), timestamp: nextTimestamp(undefined, Date.now()) };
}
