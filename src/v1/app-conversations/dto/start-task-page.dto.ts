import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../../common/openapi/next-page-id.decorator.js';
import { StartTaskDto } from './start-task.dto.js';

/** A page of start tasks. */
@ApiSchema({ name: 'AppConversationStartTaskPage' })
export class StartTaskPageDto {
  @ApiProperty({ type: [StartTaskDto] })
  items: StartTaskDto[];

  @NextPageId()
  next_page_id: string | null;
}
