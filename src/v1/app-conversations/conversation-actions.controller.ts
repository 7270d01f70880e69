import { Body, Controller, HttpCode, Param, Post } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { AuthUser } from '../../auth/auth-user.js';
import { CurrentUser } from '../../auth/current-user.decorator.js';
import { SUCCESS, type SuccessDto } from '../../common/openapi/success.dto.js';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import {
  PauseConversationOperation,
  RespondToConfirmationOperation,
  RunConversationOperation,
  SendMessageOperation,
} from './conversation-actions.operations.js';
import { ConversationActionsService } from './conversation-actions.service.js';
import { ConfirmationResponseDto } from './dto/confirmation-response.dto.js';
import { ConversationIdDto } from './dto/conversation-id.dto.js';
import type { MessageSentDto } from './dto/message-sent.dto.js';
import { SendMessageDto, toSendMessageRequest } from './dto/send-message.dto.js';

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations/:id')
export class ConversationActionsController {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly agentServers: AgentServerClient,
  ) {}

  @Post('send-message')
  @HttpCode(200)
  @SendMessageOperation()
  async sendMessage(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() body: SendMessageDto,
  ): Promise<MessageSentDto> {
    await this.actions.act(user.id, id, (target, conversation) =>
      this.agentServers.sendMessage(target, conversation.id, toSendMessageRequest(body)),
    );
    return { success: true, sandbox_status: 'RUNNING', message: null };
  }

  @Post('respond-to-confirmation')
  @HttpCode(200)
  @RespondToConfirmationOperation()
  async respond(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() { accept, reason }: ConfirmationResponseDto,
  ): Promise<SuccessDto> {
    await this.actions.act(user.id, id, (target, conversation) =>
      this.agentServers.respondToConfirmation(target, conversation.id, {
        accept,
        ...(reason !== undefined && reason !== null && { reason }),
      }),
    );
    return SUCCESS;
  }

  @Post('pause')
  @HttpCode(200)
  @PauseConversationOperation()
  async pause(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<SuccessDto> {
    await this.actions.stop(user.id, id, (target, conversation) =>
      this.agentServers.pause(target, conversation.id),
    );
    return SUCCESS;
  }

  @Post('run')
  @HttpCode(200)
  @RunConversationOperation()
  async run(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<SuccessDto> {
    await this.actions.act(user.id, id, (target, conversation) =>
      this.agentServers.run(target, conversation.id),
    );
    return SUCCESS;
  }
}
