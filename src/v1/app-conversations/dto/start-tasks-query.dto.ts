import { parseHexId } from '../../../common/hex-id.js';
import { Choice } from '../../../common/validation/choice.decorator.js';
import { Identifier } from '../../../common/validation/identifier.decorator.js';
import { Instant } from '../../../common/validation/instant.decorator.js';
import { Integer } from '../../../common/validation/integer.decorator.js';
import { RepeatedText } from '../../../common/validation/repeated-text.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';
import { START_TASK_ORDERS, type StartTaskFilter, type StartTaskOrder } from '../start-tasks.reader.js';

/** Query of `GET /api/v1/app-conversations/start-tasks/count`. */
export class StartTaskFilterQueryDto {
  @Identifier({
    description: 'Only the task of this conversation.',
    example: '5d2f8c1e-7a3b-4c9d-8e0f-1a2b3c4d5e6f',
  })
  conversation_id__eq?: string;

  @Instant({ description: 'Created at this moment or later.', example: '2026-11-01T00:00:00Z' })
  created_at__gte?: Date;
}

/** Query of `GET /api/v1/app-conversations/start-tasks/search`. */
export class SearchStartTasksQueryDto extends StartTaskFilterQueryDto {
  @Choice({ values: START_TASK_ORDERS, description: 'Order of the list.', default: 'CREATED_AT_DESC' })
  sort_order?: StartTaskOrder;

  @Text({
    description: '`next_page_id` of the page before.',
    example: 'MjAyNi0xMS0yMVQwOTozMDowMC4wMDAwMDBaIGM0YjFmMGUy',
  })
  page_id?: string;

  @Integer({ description: 'Tasks on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;
}

/** Query of `GET /api/v1/app-conversations/start-tasks`. */
export class StartTaskIdsQueryDto {
  @RepeatedText({
    required: true,
    description: 'Id of a start task; repeat it for more, at most 100.',
    most: 100,
    example: ['c4b1f0e29d3a4857b6c5d4e3f2a1b0c9'],
  })
  ids: string[];
}

export function toStartTaskFilter(query: StartTaskFilterQueryDto): StartTaskFilter {
  const { conversation_id__eq: id, created_at__gte: createdFrom } = query;
  return { conversationId: id === undefined ? undefined : (parseHexId(id) ?? undefined), createdFrom };
}
