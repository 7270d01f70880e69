import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../common/openapi/responses.js';
import { decodePageId } from '../../common/pagination/page.js';
import { Integer } from '../../common/validation/number-fields.js';
import { Text } from '../../common/validation/text-fields.js';
import { SuggestedTaskDto } from '../../suggested-tasks/suggested-tasks.dto.js';

const DEFAULT_LIMIT = 30;
/** The content of a page id: how many tasks come before the page. */
const OFFSET = /^\d{1,4}$/;

/** Query of `GET /api/v1/git/suggested-tasks/search`. */
export class SearchSuggestedTasksQueryDto {
  @Text({ description: '`next_page_id` of the page before.', example: 'MzA' })
  page_id?: string;

  @Integer({ description: 'Tasks on a page.', minimum: 1, maximum: 100, default: 30 })
  limit?: number;
}

/** A page of suggested tasks. */
@ApiSchema({ name: 'SuggestedTaskPage' })
export class SuggestedTaskPageDto {
  @ApiProperty({ type: [SuggestedTaskDto] })
  items: SuggestedTaskDto[];

  @NextPageId()
  next_page_id: string | null;
}

/** An invalid page id means the first page. */
export function toPageRange({ page_id: pageId, limit = DEFAULT_LIMIT }: SearchSuggestedTasksQueryDto): {
  offset: number;
  limit: number;
} {
  const cursor = decodePageId(pageId) ?? '';
  return { offset: OFFSET.test(cursor) ? Number(cursor) : 0, limit };
}
