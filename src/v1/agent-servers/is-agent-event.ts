import type { AgentEvent } from '../../agent-protocol/events.js';
import { jsonText } from '../../common/json-access.js';

/** An event has at least an id, a kind and a time; the rest is passed on as it is, whatever a newer server adds. */
export function isAgentEvent(value: unknown): value is AgentEvent {
  const timestamp = jsonText(value, 'timestamp');
  return (
    jsonText(value, 'id') !== null &&
    jsonText(value, 'kind') !== null &&
    timestamp !== null &&
    !Number.isNaN(Date.parse(timestamp))
  );
}
