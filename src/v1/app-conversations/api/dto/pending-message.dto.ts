import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { UserMessageDto } from './conversation-actions.dto.js';

/** Body of `POST /api/v1/conversations/{id}/pending-messages`. */
@ApiSchema({ name: 'PendingMessageRequest' })
export class PendingMessageDto extends UserMessageDto {}

/** Response of `POST /api/v1/conversations/{id}/pending-messages`. */
@ApiSchema({ name: 'PendingMessageResponse' })
export class MessageQueuedDto {
  @ApiProperty({ format: 'uuid', example: '1c2d3e4f-5061-4728-8394-a5b6c7d8e9f0' })
  id: string;

  @ApiProperty({ example: true })
  queued: boolean;

  @ApiProperty({ type: 'integer', description: 'Its place among those that wait, from 1.', example: 1 })
  position: number;
}
