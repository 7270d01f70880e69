import { Instant } from '../../../common/validation/instant.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';
import type { ConversationFilter } from '../conversations.reader.js';

/** Query of `GET /api/v1/app-conversations/count`. */
export class ConversationFilterQueryDto {
  @Text({ description: 'Part of the title; case does not count.', example: 'parser' })
  title__contains?: string;

  @Instant({ description: 'Created at this moment or later.', example: '2026-11-01T00:00:00Z' })
  created_at__gte?: Date;

  @Instant({ description: 'Created before this moment.', example: '2026-12-01T00:00:00Z' })
  created_at__lt?: Date;

  @Instant({ description: 'Changed at this moment or later.', example: '2026-11-01T00:00:00Z' })
  updated_at__gte?: Date;

  @Instant({ description: 'Changed before this moment.', example: '2026-12-01T00:00:00Z' })
  updated_at__lt?: Date;

  @Text({ description: 'Only those in this sandbox.', example: '3kTMd9ZpQ2sVbX7cRfLw1A' })
  sandbox_id__eq?: string;
}

export function toConversationFilter(
  query: ConversationFilterQueryDto,
  withSubConversations: boolean,
): ConversationFilter {
  return {
    titleContains: query.title__contains,
    createdFrom: query.created_at__gte,
    createdBefore: query.created_at__lt,
    updatedFrom: query.updated_at__gte,
    updatedBefore: query.updated_at__lt,
    sandboxId: query.sandbox_id__eq,
    withSubConversations,
  };
}
