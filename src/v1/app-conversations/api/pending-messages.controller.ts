import { Body, Controller, Param, Post } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { PendingMessagesService } from '../pending/pending-messages.service.js';
import { ConversationIdDto } from './dto/conversation.dto.js';
import {
  type MessageQueuedDto,
  PendingMessageDto,
  toSendMessageRequest,
} from './dto/conversation-actions.dto.js';
import { QueueMessageOperation } from './pending-messages.openapi.js';

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/conversations/:id/pending-messages')
export class PendingMessagesController {
  constructor(private readonly pending: PendingMessagesService) {}

  @Post()
  @QueueMessageOperation()
  async queue(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() body: PendingMessageDto,
  ): Promise<MessageQueuedDto> {
    const queued = await this.pending.queue(user.id, id, toSendMessageRequest(body).content);
    return { ...queued, queued: true };
  }
}
