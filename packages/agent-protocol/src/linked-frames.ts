/**
 * How a client of the socket of events asks for linked frames, and how a server says that it sends them. Each event
 * then comes with the id of the one before it in the log: `{"after": …, "event": …}`. A client that has the log up to
 * `after` need not read the log for this event. Frames that are not events of the log are sent unchanged. Servers that
 * do not know the parameter ignore it and do not send the header.
 */
export const LINKED_FRAMES = { parameter: 'frames', header: 'x-event-frames', value: 'linked' } as const;

/** The prefix of every linked frame, and of no other frame. */
export const LINKED_BEGINNING = '{"after":';

/** A frame as it is sent. */
export interface LinkedFrame {
  /** Id of the event before this one; null: it is the first one. */
  after: string | null;
  event: unknown;
}

/** @param event JSON text, so that the event is serialized only once */
export function linkedFrame(after: string | null, event: string): string {
  return `${LINKED_BEGINNING}${JSON.stringify(after)},"event":${event}}`;
}
