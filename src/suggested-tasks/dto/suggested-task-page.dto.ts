import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../common/openapi/next-page-id.decorator.js';
import { SuggestedTaskDto } from './suggested-task.dto.js';

/** A page of suggested tasks. */
@ApiSchema({ name: 'SuggestedTaskPage' })
export class SuggestedTaskPageDto {
  @ApiProperty({ type: [SuggestedTaskDto] })
  items: SuggestedTaskDto[];

  @NextPageId()
  next_page_id: string | null;
}
