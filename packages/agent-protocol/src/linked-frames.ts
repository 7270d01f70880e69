/**
 * Asks for frames `{"after": …, "event": …}` that name the event before, so that clients with the log up to it need
 * not read the log. Other frames are sent unchanged; servers that know no such frames send no header.
 */
export const LINKED_FRAMES = { parameter: 'frames', header: 'x-event-frames', value: 'linked' } as const;

export const LINKED_BEGINNING = '{"after":';

export interface LinkedFrame {
  /** Null: it is the first one. */
  after: string | null;
  event: unknown;
}

/** `event` is JSON text, so that it is serialized only once. */
export function linkedFrame(after: string | null, event: string): string {
  return `${LINKED_BEGINNING}${JSON.stringify(after)},"event":${event}}`;
}
