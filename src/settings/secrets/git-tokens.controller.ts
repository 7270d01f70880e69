import { Body, Controller, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute } from '../../common/openapi/api-route.js';
import {
  AddGitProvidersDto,
  type GitProvidersStoredDto,
  type GitProvidersUnsetDto,
  REMOVE_TOKENS,
  STORE_TOKENS,
  toGitProvidersStoredDto,
  TOKENS_REMOVED,
} from './git-tokens.dto.js';
import { GitTokensService } from './git-tokens.service.js';

@ApiTags('Git providers')
@Controller('api')
export class GitTokensController {
  constructor(private readonly tokens: GitTokensService) {}

  @Post('add-git-providers')
  @ApiRoute('store_provider_tokens_', STORE_TOKENS.summary, STORE_TOKENS)
  async add(@UserId() userId: string, @Body() body: AddGitProvidersDto): Promise<GitProvidersStoredDto> {
    return toGitProvidersStoredDto(await this.tokens.add(userId, body));
  }

  @Post('unset-provider-tokens')
  @ApiRoute('unset_provider_tokens_', REMOVE_TOKENS.summary, REMOVE_TOKENS)
  async unset(@UserId() userId: string): Promise<GitProvidersUnsetDto> {
    await this.tokens.removeAll(userId);
    return TOKENS_REMOVED;
  }
}
