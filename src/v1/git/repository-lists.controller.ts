import { Controller, Get, Query, Res } from '@nestjs/common';
import { type ApiResponseNoStatusOptions, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { type AuthUser, CurrentUser, UserId } from '../../auth/auth.decorators.js';
import { ApiRoute, documented } from '@slipway/api/openapi/api-route.js';
import type { DtoClass } from '@slipway/api/validation/field.js';
import { RepositoryListsService } from '../../git-providers/repository-lists.service.js';
import {
  PROVIDER_STATUS_HEADER,
  SUGGESTED_TASKS_PROBLEMS,
  LinkedTaskDto,
  toLinkedTaskDto,
} from '../../suggested-tasks/suggested-tasks.dto.js';
import { PageOf, PageQuery, toPageDto } from '@slipway/api/pagination/page.dto.js';
import { parseNumberCursor, parsePageId, toPage } from '@slipway/api/pagination/page.js';
import { providerStatusHeader } from '../../suggested-tasks/provider-status.js';
import { SuggestedTasksService } from '../../suggested-tasks/suggested-tasks.service.js';
import {
  BranchPageDto,
  InstallationPageDto,
  LIST_PROBLEMS,
  RepositoryPageDto,
  SearchBranchesQueryDto,
  SearchInstallationsQueryDto,
  SearchRepositoriesQueryDto,
  toBranchDto,
  toBranchQuery,
  toListPage,
  toListRange,
  toRepositoryDto,
  toRepositoryQuery,
  UNKNOWN_REPOSITORY,
  withStatus,
} from './repository-lists.dto.js';

const UNKNOWN_INSTALLATION = documented(
  404,
  'At github, there is no such installation, or the token cannot see it.',
  'Unknown to the provider, or not for this token',
);

@ApiTags('Git providers')
@Controller('api/v1/git')
export class RepositoryListsController {
  constructor(private readonly lists: RepositoryListsService) {}

  @Get('repositories/search')
  @ApiRoute('search_repositories_', 'Repositories of the user at a git provider', {
    description:
      'Read from the provider and kept for a minute. X-Provider-Status tells when older data stands in for it.',
    answer: pageOf(RepositoryPageDto, 'A page of repositories'),
    problems: [...LIST_PROBLEMS, UNKNOWN_INSTALLATION],
  })
  async repositories(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchRepositoriesQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<RepositoryPageDto> {
    const found = await this.lists.findRepositories(user, query.provider, toRepositoryQuery(query));
    return toListPage('repositories', withStatus(response, found), toRepositoryDto);
  }

  @Get('branches/search')
  @ApiRoute('search_branches_', 'Branches of a repository at a git provider', {
    description: 'Read from the provider and kept for a minute.',
    answer: pageOf(BranchPageDto, 'A page of branches'),
    problems: [...LIST_PROBLEMS, UNKNOWN_REPOSITORY],
  })
  async branches(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchBranchesQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<BranchPageDto> {
    const found = await this.lists.findBranches(user, query.provider, toBranchQuery(query));
    return toListPage('branches', withStatus(response, found), toBranchDto);
  }

  @Get('installations/search')
  @ApiRoute('search_user_installations_', 'What the repositories of a git provider can be narrowed down to', {
    description:
      "Installations of a GitHub App, Bitbucket's workspaces or projects; none where the provider or the token has no such thing.",
    answer: pageOf(InstallationPageDto, 'A page of installations'),
    problems: LIST_PROBLEMS,
  })
  async installations(
    @UserId() userId: string,
    @Query() query: SearchInstallationsQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<InstallationPageDto> {
    const found = await this.lists.findInstallations(
      userId,
      query.provider,
      toListRange('installations', query),
    );
    return toListPage('installations', withStatus(response, found), (id) => id);
  }
}

function pageOf(type: DtoClass, description: string): ApiResponseNoStatusOptions {
  return { type, description, headers: { 'X-Provider-Status': PROVIDER_STATUS_HEADER } };
}

/** A page id holds how many tasks come before the page, at most these. */
const MAX_OFFSET = 9999;

class SearchSuggestedTasksQueryDto extends PageQuery('Tasks on a page.', 30) {}

class SuggestedTaskPageDto extends PageOf(LinkedTaskDto) {}

/** The suggested tasks page by page, as V1 clients of OpenHands read them. */
@ApiTags('Suggested tasks')
@Controller('api/v1/git/suggested-tasks')
export class SuggestedTaskPagesController {
  constructor(private readonly suggestedTasks: SuggestedTasksService) {}

  @Get('search')
  @ApiRoute('search_suggested_tasks', 'Suggested tasks by pages', {
    description:
      'The tasks of GET /api/user/suggested-tasks, in the same order, each with its page on the host.',
    answer: {
      type: SuggestedTaskPageDto,
      description: 'A page of tasks',
      headers: { 'X-Provider-Status': PROVIDER_STATUS_HEADER },
    },
    problems: SUGGESTED_TASKS_PROBLEMS,
  })
  async search(
    @CurrentUser() { id: userId, repositories }: AuthUser,
    @Query() { page_id: pageId, limit }: SearchSuggestedTasksQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<SuggestedTaskPageDto> {
    const offset = parsePageId('suggested-tasks', pageId, parseNumberCursor(MAX_OFFSET)) ?? 0;
    const selection = { limit: offset + limit + 1, repositories };
    const { tasks, statuses } = await this.suggestedTasks.find(userId, selection);
    if (statuses.length > 0) {
      response.set('X-Provider-Status', providerStatusHeader(statuses));
    }
    const page = toPage('suggested-tasks', tasks.slice(offset), limit, () => String(offset + limit));
    return toPageDto(page, toLinkedTaskDto);
  }
}
