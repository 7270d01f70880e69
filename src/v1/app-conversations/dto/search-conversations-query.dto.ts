import { Flag } from '../../../common/validation/flag.decorator.js';
import { Integer } from '../../../common/validation/integer.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';
import { ConversationFilterQueryDto } from './conversation-filter-query.dto.js';

/** Query of `GET /api/v1/app-conversations/search`. */
export class SearchConversationsQueryDto extends ConversationFilterQueryDto {
  @Text({
    description: '`next_page_id` of the page before.',
    example: 'MjAyNi0xMS0yMVQwOTozMDowMC4wMDAwMDBaIDVkMmY4YzFl',
  })
  page_id?: string;

  @Integer({ description: 'Conversations on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;

  @Flag({ description: 'Also those that are part of another one.', default: false, example: true })
  include_sub_conversations?: boolean;
}
