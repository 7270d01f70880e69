import { InvalidInputError } from '../../../common/errors/invalid-input.error.js';

/** Where a client wants its stream to begin. */
export interface StreamStart {
  /** Header Last-Event-ID. */
  header: string | undefined;
  /** Parameter `last_event_id`. */
  query: string | undefined;
  /** Without either: with the next event instead of the first one. */
  fromNow: boolean;
}

/**
 * Number of the event after which a stream begins.
 *
 * @param eventCount number of the last event there is
 * @throws InvalidInputError for an id that no event of the conversation has had
 */
export function streamPosition({ header, query, fromNow }: StreamStart, eventCount: number): number {
  const [text, loc] = header ? [header, ['header', 'last-event-id']] : [query, ['query', 'last_event_id']];
  if (text === undefined || text === '') {
    return fromNow ? eventCount : 0;
  }
  if (!/^\d{1,10}$/.test(text) || Number(text) > eventCount) {
    throw new InvalidInputError([
      { loc, msg: 'Expected the id of an event of this stream, which is a number.', type: 'value_error' },
    ]);
  }
  return Number(text);
}
