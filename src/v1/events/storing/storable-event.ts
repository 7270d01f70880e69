import type { AgentEvent } from '../../../agent-protocol/events.js';
import { toInstant } from './instant.js';
import { shortenTexts } from './shorten-texts.js';
import { storableJson, storableText } from './storable-json.js';

/** Bytes of an event above which its longest texts are cut: a page of a hundred should fit into memory. */
export const MAX_EVENT_BYTES = 4 * 1024 * 1024;
const LONGEST_KIND = 200;

/** An event as it is written to its table. */
export interface StorableEvent {
  /** As it came, apart from what could not be stored. */
  event: AgentEvent;
  id: string;
  kind: string;
  /** ISO 8601 with microseconds. */
  occurredAt: string;
  /** JSON text of the event. */
  body: string;
}

/**
 * Makes an event storable: NUL and lone surrogates replaced, its longest texts cut when it is too large.
 *
 * @param now taken for the time of an event whose own is out of this world
 */
export function toStorable(given: AgentEvent, now: Date): StorableEvent {
  return storable(shortenTexts(storableJson(given), MAX_EVENT_BYTES), now);
}

/** The little of an event that can always be stored, for one that PostgreSQL refuses as a whole. */
export function toStandIn({ id, timestamp, source, kind }: AgentEvent, now: Date): StorableEvent {
  return storable(storableJson({ id, timestamp, source, kind } as AgentEvent), now);
}

function storable(event: AgentEvent, now: Date): StorableEvent {
  return {
    event,
    id: storableText(event.id),
    kind: storableText(event.kind).slice(0, LONGEST_KIND),
    occurredAt: toInstant(event.timestamp) ?? now.toISOString(),
    body: JSON.stringify(event),
  };
}
