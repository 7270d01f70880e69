import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../auth/auth.decorators.js';
import { ApiRoute, badInput } from '../common/openapi/api-route.js';
import { PROVIDER_TYPES } from '../git-providers/git-provider.js';
import { RepositoryListsService } from '../git-providers/repository-lists.service.js';
import {
  BranchDto,
  LIST_PROBLEMS,
  RepositoryDto,
  UNKNOWN_REPOSITORY,
} from '../v1/git/repository-lists.dto.js';
import { toBranchDto } from '../v1/git/repository-lists.mapper.js';
import {
  BranchesPageDto,
  MAX_LIMIT,
  RepositoryBranchesQueryDto,
  SearchUserBranchesQueryDto,
  SearchUserRepositoriesQueryDto,
  toBranchesPageDto,
  toLinkedRepositoryDtos,
  toSearchSort,
  UserInstallationsQueryDto,
  UserRepositoriesQueryDto,
} from './repositories.dto.js';

const DEFAULT_LIMIT = 30;
const MAX_INSTALLATIONS = 100;
const LISTED = 'As the provider lists them';
const LIST = {
  description: 'Read from the git provider and kept for a minute.',
  problems: [...LIST_PROBLEMS, UNKNOWN_REPOSITORY],
  invalid: badInput('query.provider', `Expected one of: ${PROVIDER_TYPES.join(', ')}.`, 'enum'),
};

/** V1's lists in the format of the older web application. */
@ApiTags('Git providers')
@Controller('api/user')
export class UserRepositoriesController {
  constructor(private readonly lists: RepositoryListsService) {}

  @Get('repositories')
  @ApiRoute('get_user_repositories_api_user_repositories_get', 'Repositories of the user', {
    ...LIST,
    answer: { type: [RepositoryDto], description: LISTED },
  })
  async repositories(
    @UserId() userId: string,
    @Query() { selected_provider: provider, ...query }: UserRepositoriesQueryDto,
  ): Promise<RepositoryDto[]> {
    const { installation_id: installation = null, page = 1, per_page: limit = DEFAULT_LIMIT } = query;
    const wanted = { text: null, sort: null, installation, position: page, limit };
    return toLinkedRepositoryDtos(await this.lists.findRepositories(userId, provider ?? null, wanted));
  }

  @Get('search/repositories')
  @ApiRoute('search_repositories_api_user_search_repositories_get', 'Repositories by part of a name', {
    ...LIST,
    answer: { type: [RepositoryDto], description: LISTED },
  })
  async searchRepositories(
    @UserId() userId: string,
    @Query() query: SearchUserRepositoriesQueryDto,
  ): Promise<RepositoryDto[]> {
    const { query: text, per_page: limit = DEFAULT_LIMIT, selected_provider: provider = null } = query;
    const range = { installation: null, position: 1, limit: Math.min(limit, MAX_LIMIT) };
    const wanted = { ...range, text: text === '' ? null : text, sort: toSearchSort(query) };
    return toLinkedRepositoryDtos(await this.lists.findRepositories(userId, provider, wanted));
  }

  @Get('repository/branches')
  @ApiRoute('get_repository_branches_api_user_repository_branches_get', 'Branches of a repository', {
    ...LIST,
    answer: { type: BranchesPageDto, description: LISTED },
  })
  async branches(
    @UserId() userId: string,
    @Query() { repository, page = 1, per_page: limit = DEFAULT_LIMIT }: RepositoryBranchesQueryDto,
  ): Promise<BranchesPageDto> {
    const wanted = { repository, text: null, position: page, limit };
    return toBranchesPageDto(await this.lists.findBranches(userId, null, wanted), page, limit);
  }

  @Get('search/branches')
  @ApiRoute('search_user_branches', 'Branches by part of a name', {
    ...LIST,
    answer: { type: [BranchDto], description: LISTED },
  })
  async searchBranches(
    @UserId() userId: string,
    @Query() query: SearchUserBranchesQueryDto,
  ): Promise<BranchDto[]> {
    const { repository, query: text, per_page: limit = DEFAULT_LIMIT, selected_provider: provider } = query;
    const wanted = { repository, text: text === '' ? null : text, position: 1, limit };
    const { read } = await this.lists.findBranches(userId, provider ?? null, wanted);
    return read.value.items.map(toBranchDto);
  }

  @Get('installations')
  @ApiRoute(
    'get_user_installations_api_user_installations_get',
    'What repositories can be narrowed down to',
    { ...LIST, answer: { type: [String], description: LISTED, example: ['acme'] } },
  )
  async installations(
    @UserId() userId: string,
    @Query() { provider }: UserInstallationsQueryDto,
  ): Promise<string[]> {
    const range = { position: 1, limit: MAX_INSTALLATIONS };
    return (await this.lists.findInstallations(userId, provider, range)).read.value.items;
  }
}
