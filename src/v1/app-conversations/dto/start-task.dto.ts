import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { START_TASK_STATUSES, type StartTaskStatus } from '../start-task-status.js';
import { StartRequestEchoDto } from './start-request-echo.dto.js';

/** A conversation on its way. */
@ApiSchema({ name: 'AppConversationStartTask' })
export class StartTaskDto {
  @ApiProperty({ description: '32 hexadecimal digits.', example: 'c4b1f0e29d3a4857b6c5d4e3f2a1b0c9' })
  id: string;

  @ApiProperty({ type: String, nullable: true, example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' })
  created_by_user_id: string | null;

  @ApiProperty({
    enum: START_TASK_STATUSES,
    enumName: 'AppConversationStartTaskStatus',
    description: 'In this order; ERROR can follow each but READY.',
    example: 'WORKING',
  })
  status: StartTaskStatus;

  @ApiProperty({
    type: String,
    nullable: true,
    description:
      'What it waits for, why it failed, which sandboxes were paused to make room, and what of the request has no effect.',
    example: null,
  })
  detail: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The conversation, from READY on.',
    example: null,
  })
  app_conversation_id: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The sandbox, from WAITING_FOR_SANDBOX on.',
    example: null,
  })
  sandbox_id: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Its agent server, from STARTING_CONVERSATION on, while it runs.',
    example: null,
  })
  agent_server_url: string | null;

  @ApiProperty({ type: StartRequestEchoDto })
  request: StartRequestEchoDto;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })
  created_at: string;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })
  updated_at: string;
}
