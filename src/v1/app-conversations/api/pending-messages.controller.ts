import { Body, Controller, Param, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../../../auth/auth.decorators.js';
import { ApiRoute, thrown } from '../../../common/openapi/api-route.js';
import { UNKNOWN_CONVERSATION } from '../../events/events.dto.js';
import { sandboxNotRunning } from '../conversation-actions.service.js';
import { toSendMessageRequest } from '../message-parts.js';
import { PendingMessagesService, startFailed, tooManyPending } from '../pending/pending-messages.service.js';
import { MessageQueuedDto, PendingMessageDto } from './dto/conversation-actions.dto.js';
import { ConversationIdDto } from './dto/conversation.dto.js';

const DESCRIPTION =
  'The id is that of a conversation, or `task-` and the id of its start task. The message is kept, and the agent ' +
  'gets it once, after those before it: when the start is READY, or at once where it is. While the sandbox is ' +
  'paused it waits for the resume. Messages of a start that fails are dropped.';
const PROBLEMS = [
  UNKNOWN_CONVERSATION,
  thrown(startFailed(), 'The start failed'),
  thrown(sandboxNotRunning('MISSING', ''), 'The sandbox is gone'),
  thrown(tooManyPending(), 'Too many requests, or ten messages wait already'),
];

@ApiTags('Conversations')
@Controller('api/v1/conversations/:id/pending-messages')
export class PendingMessagesController {
  constructor(private readonly pending: PendingMessagesService) {}

  @Post()
  @ApiRoute('queue_pending_message', 'Say something as soon as the conversation is ready', {
    description: DESCRIPTION,
    status: 201,
    answer: { type: MessageQueuedDto, description: 'It is kept' },
    examples: {
      text: {
        summary: 'A text',
        value: { content: [{ type: 'text', text: 'Use the staging host instead.' }] },
      },
    },
    problems: PROBLEMS,
  })
  async queue(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
    @Body() body: PendingMessageDto,
  ): Promise<MessageQueuedDto> {
    const queued = await this.pending.queue(userId, id, toSendMessageRequest(body).content);
    return { ...queued, queued: true };
  }
}
