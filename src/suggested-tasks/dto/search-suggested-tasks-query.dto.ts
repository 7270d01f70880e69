import { Integer } from '../../common/validation/integer.decorator.js';
import { Text } from '../../common/validation/text.decorator.js';

/** Query of `GET /api/v1/git/suggested-tasks/search`. */
export class SearchSuggestedTasksQueryDto {
  @Text({ description: '`next_page_id` of the page before.', example: 'MzA' })
  page_id?: string;

  @Integer({ description: 'Tasks on a page.', minimum: 1, maximum: 100, default: 30 })
  limit?: number;
}
