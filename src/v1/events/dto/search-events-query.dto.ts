import { Choice } from '../../../common/validation/choice.decorator.js';
import { Integer } from '../../../common/validation/integer.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';
import { CountEventsQueryDto } from './count-events-query.dto.js';

export const EVENT_SORT_ORDERS = ['TIMESTAMP', 'TIMESTAMP_DESC'] as const;

/** Query of `GET …/events/search`. */
export class SearchEventsQueryDto extends CountEventsQueryDto {
  @Choice({
    description: 'Oldest or newest first.',
    values: EVENT_SORT_ORDERS,
    default: 'TIMESTAMP',
  })
  sort_order?: (typeof EVENT_SORT_ORDERS)[number];

  @Text({ description: '`next_page_id` of the page before.', example: 'MTAw' })
  page_id?: string;

  @Integer({
    description: 'Events on a page; large events make a page shorter.',
    minimum: 1,
    maximum: 100,
    default: 100,
  })
  limit?: number;
}
