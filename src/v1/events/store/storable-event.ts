import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { toInstant } from '@slipway/common/clock.js';

/** Longer events have their longest texts cut, so that a page of a hundred fits into memory. */
export const MAX_EVENT_BYTES = 4 * 1024 * 1024;
const MAX_KIND_LENGTH = 200;

export interface StorableEvent {
  event: AgentEvent;
  id: string;
  kind: string;
  /** ISO 8601 with microseconds. */
  occurredAt: string;
  body: string;
}

/** Key of an event that only the service writes: it offers users to allow what was refused. */
export const EGRESS_DENIED = 'EgressDenied';

/** As {@link toStorable}, for an event that a sandbox has sent: it has another key where it says to be one of the service. */
export function toStorableOfSandbox(given: AgentEvent, now: Date): StorableEvent {
  const isForged = 'key' in given && given.key === EGRESS_DENIED;
  return toStorable(isForged ? { ...given, key: `Unverified${EGRESS_DENIED}` } : given, now);
}

/** Replaces NUL and lone surrogates, cuts the texts of large events, and uses `now` for an invalid timestamp. */
export function toStorable(given: AgentEvent, now: Date): StorableEvent {
  const event = storableJson(given);
  const body = JSON.stringify(event);
  const shorter = shortenTexts(event, MAX_EVENT_BYTES, Buffer.byteLength(body));
  return storable(shorter, shorter === event ? body : JSON.stringify(shorter), now);
}

/** The few members that can always be stored, for an event that PostgreSQL refuses as a whole. */
export function toStub({ id, timestamp, source, kind }: AgentEvent, now: Date): StorableEvent {
  const event = storableJson({ id, timestamp, source, kind } as AgentEvent);
  return storable(event, JSON.stringify(event), now);
}

/** Returns a notice that takes the place of the first event for which there is no room. */
export function toFullNotice({ id, occurredAt }: StorableEvent): StorableEvent {
  const detail =
    'The events of this conversation, or of all of your conversations, take as much space as they may. What the agent does from here on is not stored: begin another conversation, or delete some.';
  const about = {
    kind: 'ConversationErrorEvent',
    source: 'environment',
    code: 'StorageFull',
    detail,
  } as const;
  const event = { id, timestamp: occurredAt, ...about };
  return storable(event, JSON.stringify(event), new Date(occurredAt));
}

function storable(event: AgentEvent, body: string, now: Date): StorableEvent {
  return {
    event,
    id: storableText(event.id),
    kind: storableText(event.kind).slice(0, MAX_KIND_LENGTH),
    occurredAt: toInstant(event.timestamp) ?? now.toISOString(),
    body,
  };
}

/** Stands for NUL and lone surrogates, which PostgreSQL cannot store in a text. */
const REPLACEMENT = '\u{FFFD}';

/** Replaces NUL and lone surrogates by U+FFFD. */
export function storableText(text: string): string {
  return text.replaceAll('\0', REPLACEMENT).toWellFormed();
}

/** Makes every text and key storable; returns the value itself when nothing has to change. */
export function storableJson<T>(value: T): T {
  return isStorable(value) ? value : (cleaned(value) as T);
}

/** Ten times as fast as serialising to JSON when many characters need escapes. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') {
    return value.isWellFormed() && !value.includes('\0');
  }
  if (Array.isArray(value)) {
    return value.every(isStorable);
  }
  return (
    typeof value !== 'object' ||
    value === null ||
    Object.entries(value).every(([key, member]) => isStorable(key) && isStorable(member))
  );
}

function cleaned(value: unknown): unknown {
  if (typeof value === 'string') {
    return storableText(value);
  }
  if (Array.isArray(value)) {
    return value.map(cleaned);
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [storableText(key), cleaned(member)]))
    : value;
}

/** The longest sufficient length is used. */
const TEXT_LENGTHS = [1_048_576, 262_144, 65_536, 8_192, 1_024];
/** Upper bound of the note in a cut text. */
const NOTE_BYTES = 60;

/**
 * Cuts the longest texts until the JSON has at most `maxBytes`; each cut text says how much is missing. If that is not
 * enough, only the plain values of the first level stay.
 */
export function shortenTexts<T extends object>(
  value: T,
  maxBytes: number,
  bytes = Buffer.byteLength(JSON.stringify(value)),
): T {
  if (bytes <= maxBytes) {
    return value;
  }
  const texts = longTexts(value);
  // Computed, because writing all of it again for each attempt is slow.
  const length = TEXT_LENGTHS.find((each) => bytes - savedBytes(texts, each) <= maxBytes);
  if (length !== undefined) {
    return shortened(value, length) as T;
  }
  const flat = Object.entries(shortened(value, TEXT_LENGTHS.at(-1) ?? 0) as object).filter(
    ([, member]) => typeof member !== 'object' || member === null,
  );
  return Object.fromEntries(flat) as T;
}

function longTexts(value: unknown): string[] {
  if (typeof value === 'string') {
    return value.length > (TEXT_LENGTHS.at(-1) ?? 0) ? [value] : [];
  }
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(longTexts) : [];
}

/** Lower bound of the bytes saved: JSON never encodes a character shorter than UTF-8. */
function savedBytes(texts: readonly string[], length: number): number {
  return texts
    .filter((text) => text.length > length)
    .reduce((sum, text) => sum + Buffer.byteLength(text.slice(length)) - NOTE_BYTES, 0);
}

function shortened(value: unknown, length: number): unknown {
  if (typeof value === 'string') {
    const kept = textHead(value, length);
    return kept.length === value.length
      ? value
      : `${kept.toWellFormed()} [${value.length - kept.length} characters left out]`;
  }
  if (Array.isArray(value)) {
    return value.map((element) => shortened(element, length));
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shortened(member, length)]))
    : value;
}
