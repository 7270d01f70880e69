import type { AgentEvent } from '../../agent-protocol/events.js';

export interface EventFilter {
  /** Kind; a path of modules before it is allowed (`openhands.sdk.event.MessageEvent`). */
  kind?: string | undefined;
  source?: string | undefined;
  /** Part of a message's text, in any case. */
  body?: string | undefined;
  timestamp__gte?: string | undefined;
  timestamp__lt?: string | undefined;
}

/** Whether an event is what a search asks for. */
export function eventMatcher(filter: EventFilter): (event: AgentEvent) => boolean {
  const kind = filter.kind?.split('.').at(-1);
  const body = filter.body?.toLowerCase();
  return (event) =>
    (kind === undefined || event.kind === kind) &&
    (filter.source === undefined || event.source === filter.source) &&
    (filter.timestamp__gte === undefined || event.timestamp >= filter.timestamp__gte) &&
    (filter.timestamp__lt === undefined || event.timestamp < filter.timestamp__lt) &&
    (body === undefined || messageText(event).toLowerCase().includes(body));
}

function messageText(event: AgentEvent): string {
  return event.kind === 'MessageEvent'
    ? event.llm_message.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
    : '';
}
