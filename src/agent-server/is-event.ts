import type { BashEvent } from '../agent-protocol/bash-events.js';
import type { AgentEvent } from '../agent-protocol/events.js';
import { jsonText } from '../common/json-access.js';

/** Whether a line of a conversation's log is whole. */
export function isAgentEvent(value: unknown): value is AgentEvent {
  return isWhole(value);
}

/** Whether a line of the log of bash commands is whole. */
export function isBashEvent(value: unknown): value is BashEvent {
  return isWhole(value);
}

function isWhole(value: unknown): boolean {
  return ['id', 'timestamp', 'kind'].every((member) => jsonText(value, member) !== null);
}
