import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { StartTaskDto } from './start-task.dto.js';

/** A page of start tasks. */
@ApiSchema({ name: 'AppConversationStartTaskPage' })
export class StartTaskPageDto {
  @ApiProperty({ type: [StartTaskDto] })
  items: StartTaskDto[];

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Pass it as `page_id` for the next page.',
    example: null,
  })
  next_page_id: string | null;
}
