import { Choice } from '../../../common/validation/choice.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';

export const STREAM_STARTS = ['start', 'now'] as const;

/** Query of `GET …/events/stream`. */
export class StreamQueryDto {
  @Choice({
    description: 'Where to begin when no last event is named: with the first event, or with the next one.',
    values: STREAM_STARTS,
    default: 'start',
  })
  from?: (typeof STREAM_STARTS)[number];

  @Text({
    description: 'As the header Last-Event-ID, for clients that cannot set it; the header decides.',
    example: '17',
  })
  last_event_id?: string;
}
