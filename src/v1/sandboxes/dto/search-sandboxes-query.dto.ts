import { Integer } from '../../../common/validation/integer.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';

/** Query of `GET /api/v1/sandboxes/search`. */
export class SearchSandboxesQueryDto {
  @Text({ description: '`next_page_id` of the page before.', example: 'MjAzMC0wMS0zMVQxMjowMDowMFo' })
  page_id?: string;

  @Integer({ description: 'Sandboxes on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;
}
