import { ApiProperty } from '@nestjs/swagger';

/** Documents `next_page_id` of a page. */
export function NextPageId(): PropertyDecorator {
  return ApiProperty({
    type: String,
    nullable: true,
    description: 'Pass it as `page_id` for the next page.',
    example: null,
  });
}
