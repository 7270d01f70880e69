import { Integer } from '../../common/validation/integer.decorator.js';
import { Text } from '../../common/validation/text.decorator.js';

/** Query of `GET /api/v1/users`. */
export class SearchUsersQueryDto {
  @Text({ description: 'Only the user with this address.', example: 'ada@example.com' })
  email__eq?: string;

  @Integer({ description: 'Users on a page.', minimum: 1, maximum: 100, default: 100 })
  limit?: number;

  @Text({ description: '`next_page_id` of the page before.', example: 'YWRhQGV4YW1wbGUuY29t' })
  page_id?: string;
}
