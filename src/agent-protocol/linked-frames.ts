/**
 * How a client of the socket of events asks for linked frames, and how a server says that it sends them. Each event then
 * comes with the id of the one before it in the log: `{"after": …, "event": …}`. Whoever has the log up to `after` need not
 * read it for this event. Frames that are no events of the log come as they are. Servers that do not know the parameter
 * ignore it, and say nothing.
 */
export const LINKED_FRAMES = { parameter: 'frames', header: 'x-event-frames', value: 'linked' } as const;

/** What a linked frame begins with, and no other one. */
export const LINKED_BEGINNING = '{"after":';

/** A frame as it is sent. */
export interface LinkedFrame {
  /** Id of the event before this one; null: it is the first one. */
  after: string | null;
  event: unknown;
}

/** @param event JSON text, so that it is written once */
export function linkedFrame(after: string | null, event: string): string {
  return `${LINKED_BEGINNING}${JSON.stringify(after)},"event":${event}}`;
}
