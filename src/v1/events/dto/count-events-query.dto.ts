import { Text } from '../../../common/validation/text.decorator.js';
import { EventTime } from './event-time.decorator.js';

/** Query of `GET …/events/count`. */
export class CountEventsQueryDto {
  @Text({ description: 'Only events of this kind.', example: 'MessageEvent' })
  kind__eq?: string;

  @EventTime({
    description: 'Only events from this moment on; without a time zone it is UTC.',
    example: '2026-11-21T09:30:00Z',
  })
  timestamp__gte?: string;

  @EventTime({
    description: 'Only events before this moment; without a time zone it is UTC.',
    example: '2026-11-22T00:00:00Z',
  })
  timestamp__lt?: string;
}
