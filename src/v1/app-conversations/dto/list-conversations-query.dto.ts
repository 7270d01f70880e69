import { RepeatedText } from '../../../common/validation/repeated-text.decorator.js';
import { SearchConversationsQueryDto } from './search-conversations-query.dto.js';

/** Query of `GET /api/v1/app-conversations`. */
export class ListConversationsQueryDto extends SearchConversationsQueryDto {
  @RepeatedText({
    description: 'Id of a conversation; repeat it for more, at most 100. Then nothing else counts.',
    most: 100,
    example: ['5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f'],
  })
  ids?: string[];
}
