import { ApiProperty } from '@nestjs/swagger';
import { ShownOrNull } from '../openapi/responses.js';
import type { DtoClass } from '../validation/field.js';
import { Integer, RepeatedText, Text } from '../validation/field-decorators.js';
import type { Page, PageRequest } from './page.js';

const MAX_LIMIT = 100;

export function NextPageId(): PropertyDecorator {
  return ShownOrNull('Pass it as `page_id` for the next page.', null);
}

export function LookupIds(what: string, example: string): PropertyDecorator {
  return RepeatedText(`${what}; repeat it for more, at most 100.`, {
    required: true,
    most: 100,
    example: [example],
  });
}

/** @param limit what it counts; the usual one is set when none is given */
export function PageQuery(limit: string, usual = MAX_LIMIT): DtoClass<PageRequest> {
  class PageQueryDto implements PageRequest {
    @Text('`next_page_id` of the page before; empty for the first one.', { example: '' }) page_id?: string;
    @Integer(limit, { minimum: 1, maximum: MAX_LIMIT, default: usual }) limit = usual;
  }
  return PageQueryDto;
}

interface PageMembers<Item> {
  items: Item[];
  next_page_id: string | null;
}

export function PageOf<Item extends object>(type: DtoClass<Item>): DtoClass<PageMembers<Item>> {
  class PageDto implements PageMembers<Item> {
    @ApiProperty({ type: [type] }) items: Item[];
    @NextPageId() next_page_id: string | null;
  }
  return PageDto;
}

export function toPageDto<Row, Item>(
  { items, nextPageId }: Page<Row>,
  toItem: (row: Row) => Item,
): PageMembers<Item> {
  return { items: items.map((row) => toItem(row)), next_page_id: nextPageId };
}

/** Query of lists that are paged by offset, as clients of other implementations expect. */
export class OffsetQueryDto {
  @Integer('Items of the list; fewer come where they are larger than 4 MiB together.', {
    minimum: 1,
    maximum: MAX_LIMIT,
    default: 50,
  })
  limit = 50;
  @Integer('Items before the first.', { minimum: 0, maximum: 100_000, default: 0 }) offset = 0;
}
