import { Body, Controller, Get, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { SUCCESS, type SuccessDto } from '../../../common/openapi/responses.js';
import { AcpModelService } from '../acp-model.service.js';
import { ConversationActionsService } from '../conversation-actions.service.js';
import { ProfileSwitchService } from '../profile-switch.service.js';
import { ConversationWorkspaceService } from '../conversation-workspace.service.js';
import {
  GitChangesOperation,
  GitDiffOperation,
  PauseConversationOperation,
  ReadFileOperation,
  RespondToConfirmationOperation,
  RunConversationOperation,
  SendMessageOperation,
  SwitchAcpModelOperation,
  SwitchProfileOperation,
} from './conversation-actions.openapi.js';
import {
  ConfirmationResponseDto,
  FileQueryDto,
  GitQueryDto,
  type MessageSentDto,
  ResumeQueryDto,
  SendMessageDto,
  SwitchAcpModelDto,
  SwitchProfileDto,
  toSendMessageRequest,
} from './dto/conversation-actions.dto.js';
import { ConversationIdDto } from './dto/conversation.dto.js';
import { DownloadSender } from './download.sender.js';

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations/:id')
export class ConversationActionsController {
  constructor(
    private readonly actions: ConversationActionsService,
    private readonly models: AcpModelService,
    private readonly profiles: ProfileSwitchService,
  ) {}

  @Post('send-message')
  @HttpCode(200)
  @SendMessageOperation()
  async sendMessage(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Query() { resume = true }: ResumeQueryDto,
    @Body() body: SendMessageDto,
  ): Promise<MessageSentDto> {
    const resumed = await this.actions.sendMessage(user.id, id, toSendMessageRequest(body), resume);
    return {
      success: true,
      sandbox_status: 'RUNNING',
      message: resumed ? 'The sandbox was paused, and was resumed for it.' : null,
    };
  }

  @Post('respond-to-confirmation')
  @HttpCode(200)
  @RespondToConfirmationOperation()
  async respond(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() { accept, reason }: ConfirmationResponseDto,
  ): Promise<SuccessDto> {
    await this.actions.respondToConfirmation(user.id, id, {
      accept,
      ...(reason !== undefined && reason !== null && { reason }),
    });
    return SUCCESS;
  }

  @Post('pause')
  @HttpCode(200)
  @PauseConversationOperation()
  async pause(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<SuccessDto> {
    await this.actions.pause(user.id, id);
    return SUCCESS;
  }

  @Post('run')
  @HttpCode(200)
  @RunConversationOperation()
  async run(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<SuccessDto> {
    await this.actions.run(user.id, id);
    return SUCCESS;
  }

  @Post('switch_profile')
  @HttpCode(200)
  @SwitchProfileOperation()
  async switchProfile(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() { profile_name: name }: SwitchProfileDto,
  ): Promise<SuccessDto> {
    await this.profiles.switchProfile(user.id, id, name);
    return SUCCESS;
  }

  @Post('switch_acp_model')
  @HttpCode(200)
  @SwitchAcpModelOperation()
  async switchAcpModel(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() { model }: SwitchAcpModelDto,
  ): Promise<SuccessDto> {
    await this.models.switchAcpModel(user.id, id, model);
    return SUCCESS;
  }
}

const BYTES = 'application/octet-stream';

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations/:id')
export class ConversationWorkspaceController {
  constructor(
    private readonly workspace: ConversationWorkspaceService,
    private readonly downloads: DownloadSender,
  ) {}

  @Get('file')
  @ReadFileOperation()
  async file(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Query() { file_path: file = 'PLAN.md' }: FileQueryDto,
    @Res() response: Response,
  ): Promise<void> {
    const asBytes = response.req.accepts(['application/json', BYTES]) === BYTES;
    await this.downloads.send(user.id, response, () => this.workspace.file(user.id, id, file, asBytes));
  }

  @Get('git/changes')
  @GitChangesOperation()
  async changes(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Query() query: GitQueryDto,
  ): Promise<unknown> {
    return this.workspace.changes(user.id, id, query);
  }

  @Get('git/diff')
  @GitDiffOperation()
  async diff(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Query() query: GitQueryDto,
  ): Promise<unknown> {
    return this.workspace.diff(user.id, id, query);
  }
}
