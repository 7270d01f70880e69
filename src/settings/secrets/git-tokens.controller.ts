import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import {
  AddGitProvidersDto,
  type GitProvidersStoredDto,
  type GitProvidersUnsetDto,
  toGitProvidersStoredDto,
  toGitProvidersUnsetDto,
} from './git-tokens.dto.js';
import { AddGitProvidersOperation, UnsetProviderTokensOperation } from './git-tokens.openapi.js';
import { GitTokensService } from './git-tokens.service.js';

@ApiTags('Git providers')
@ApiSecurity('APIKeyHeader')
@Controller('api')
export class GitTokensController {
  constructor(private readonly tokens: GitTokensService) {}

  @Post('add-git-providers')
  @HttpCode(200)
  @AddGitProvidersOperation()
  async add(@CurrentUser() user: AuthUser, @Body() body: AddGitProvidersDto): Promise<GitProvidersStoredDto> {
    return toGitProvidersStoredDto(await this.tokens.add(user.id, body));
  }

  @Post('unset-provider-tokens')
  @HttpCode(200)
  @UnsetProviderTokensOperation()
  async unset(@CurrentUser() user: AuthUser): Promise<GitProvidersUnsetDto> {
    await this.tokens.removeAll(user.id);
    return toGitProvidersUnsetDto();
  }
}
