import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { SANDBOX_STATUSES, type SandboxStatus } from '../../sandboxes/sandbox-status.js';

/** The agent server has the message. */
@ApiSchema({ name: 'AppSendMessageResponse' })
export class MessageSentDto {
  @ApiProperty({ example: true })
  success: boolean;

  @ApiProperty({ enum: SANDBOX_STATUSES, enumName: 'SandboxStatus', example: 'RUNNING' })
  sandbox_status: SandboxStatus;

  @ApiProperty({ type: String, nullable: true, example: null })
  message: string | null;
}
