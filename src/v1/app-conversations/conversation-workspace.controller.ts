import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import type { AuthUser } from '../../auth/auth-user.js';
import { CurrentUser } from '../../auth/current-user.decorator.js';
import {
  GitChangesOperation,
  GitDiffOperation,
  ReadFileOperation,
} from './conversation-workspace.operations.js';
import { ConversationWorkspaceService } from './conversation-workspace.service.js';
import { ConversationIdDto } from './dto/conversation-id.dto.js';
import { FileQueryDto, GitQueryDto } from './dto/workspace-query.dto.js';

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations/:id')
export class ConversationWorkspaceController {
  constructor(private readonly workspace: ConversationWorkspaceService) {}

  @Get('file')
  @ReadFileOperation()
  async file(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Query() { file_path: file = 'PLAN.md' }: FileQueryDto,
    @Res() response: Response,
  ): Promise<void> {
    // A text alone is no JSON to Nest, which would send it as a page.
    response.json(await this.workspace.file(user.id, id, file));
  }

  @Get('git/changes')
  @GitChangesOperation()
  async changes(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Query() { path, ref }: GitQueryDto,
  ): Promise<unknown> {
    return this.workspace.changes(user.id, id, path, ref);
  }

  @Get('git/diff')
  @GitDiffOperation()
  async diff(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Query() { path, ref }: GitQueryDto,
  ): Promise<unknown> {
    return this.workspace.diff(user.id, id, path, ref);
  }
}
