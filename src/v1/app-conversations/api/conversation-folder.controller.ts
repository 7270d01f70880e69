import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../../auth/auth.decorators.js';
import { ConversationFolderService } from '../conversation-folder.service.js';
import { GetHooksOperation, GetSkillsOperation, ListFilesOperation } from './conversation-folder.openapi.js';
import { FilesQueryDto, type HooksDto, type SkillsDto } from './dto/conversation-folder.dto.js';
import { ConversationIdDto } from './dto/conversation.dto.js';

@ApiTags('Conversations')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/app-conversations/:id')
export class ConversationFolderController {
  constructor(private readonly folder: ConversationFolderService) {}

  @Get('files')
  @ListFilesOperation()
  async files(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Query() { path = '.' }: FilesQueryDto,
  ): Promise<string[]> {
    return this.folder.files(user.id, id, path);
  }

  @Get('skills')
  @GetSkillsOperation()
  async list(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<SkillsDto> {
    return { skills: await this.folder.skills(user.id, id) };
  }

  @Get('hooks')
  @GetHooksOperation()
  async hooks(@CurrentUser() user: AuthUser, @Param() { id }: ConversationIdDto): Promise<HooksDto> {
    return { hooks: await this.folder.hooks(user.id, id) };
  }
}
