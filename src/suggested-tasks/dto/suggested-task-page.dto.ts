import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { SuggestedTaskDto } from './suggested-task.dto.js';

/** A page of suggested tasks. */
@ApiSchema({ name: 'SuggestedTaskPage' })
export class SuggestedTaskPageDto {
  @ApiProperty({ type: [SuggestedTaskDto] })
  items: SuggestedTaskDto[];

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Pass it as `page_id` for the next page.',
    example: null,
  })
  next_page_id: string | null;
}
