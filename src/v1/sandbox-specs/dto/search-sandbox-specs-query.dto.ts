import { Integer } from '../../../common/validation/integer.decorator.js';
import { Text } from '../../../common/validation/text.decorator.js';

/** Query of `GET /api/v1/sandbox-specs/search`. */
export class SearchSandboxSpecsQueryDto {
  @Text({ description: '`next_page_id` of the page before.', example: 'c2xpcHdheQ' })
  page_id?: string;

  @Integer({ description: 'Specifications on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;
}
