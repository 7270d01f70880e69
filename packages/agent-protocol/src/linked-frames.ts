/** Frames `{"after": …, "event": …}` spare clients a look into the log. Old servers send no header. */
export const LINKED_FRAMES = { parameter: 'frames', header: 'x-event-frames', value: 'linked' } as const;

export const LINKED_BEGINNING = '{"after":';

export function linkedFrame(after: string | null, event: string): string {
  return `${LINKED_BEGINNING}${JSON.stringify(after)},"event":${event}}`;
}
