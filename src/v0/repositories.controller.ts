import { applyDecorators, Controller, Get, Query } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import { ApiProblems, invalidInput } from '../common/openapi/problems.js';
import { PROVIDER_TYPES } from '../git-providers/git-provider.js';
import { RepositoryListsService } from '../git-providers/repository-lists.service.js';
import { BranchDto, RepositoryDto, toBranchDto } from '../v1/git/repository-lists.dto.js';
import { LIST_PROBLEMS } from '../v1/git/repository-lists.openapi.js';
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
const UNKNOWN = {
  status: 404,
  detail: 'At github, there is no such repository, or the token cannot see it.',
  description: 'Unknown to the provider, or not for this token',
};

/** The lists of /api/v1/git, in the form that the older web application reads them. */
@ApiTags('Git providers')
@ApiSecurity('APIKeyHeader')
@Controller('api/user')
export class UserRepositoriesController {
  constructor(private readonly lists: RepositoryListsService) {}

  @Get('repositories')
  @ListOperation('get_user_repositories_api_user_repositories_get', 'Repositories of the user', [
    RepositoryDto,
  ])
  async repositories(
    @CurrentUser() user: AuthUser,
    @Query() { selected_provider: provider, ...query }: UserRepositoriesQueryDto,
  ): Promise<RepositoryDto[]> {
    const { installation_id: installation = null, page = 1, per_page: limit = DEFAULT_LIMIT } = query;
    const wanted = { text: null, sort: null, installation, position: page, limit };
    return toLinkedRepositoryDtos(await this.lists.findRepositories(user.id, provider ?? null, wanted));
  }

  @Get('search/repositories')
  @ListOperation('search_repositories_api_user_search_repositories_get', 'Repositories by part of a name', [
    RepositoryDto,
  ])
  async searchRepositories(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchUserRepositoriesQueryDto,
  ): Promise<RepositoryDto[]> {
    const { query: text, per_page: limit = DEFAULT_LIMIT, selected_provider: provider = null } = query;
    const range = { installation: null, position: 1, limit: Math.min(limit, MAX_LIMIT) };
    const wanted = { ...range, text: text === '' ? null : text, sort: toSearchSort(query) };
    return toLinkedRepositoryDtos(await this.lists.findRepositories(user.id, provider, wanted));
  }

  @Get('repository/branches')
  @ListOperation(
    'get_repository_branches_api_user_repository_branches_get',
    'Branches of a repository',
    BranchesPageDto,
  )
  async branches(
    @CurrentUser() user: AuthUser,
    @Query() { repository, page = 1, per_page: limit = DEFAULT_LIMIT }: RepositoryBranchesQueryDto,
  ): Promise<BranchesPageDto> {
    const wanted = { repository, text: null, position: page, limit };
    return toBranchesPageDto(await this.lists.findBranches(user.id, null, wanted), page, limit);
  }

  @Get('search/branches')
  @ListOperation('search_branches_api_user_search_branches_get', 'Branches by part of a name', [BranchDto])
  async searchBranches(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchUserBranchesQueryDto,
  ): Promise<BranchDto[]> {
    const { repository, query: text, per_page: limit = DEFAULT_LIMIT, selected_provider: provider } = query;
    const wanted = { repository, text: text === '' ? null : text, position: 1, limit };
    const { read } = await this.lists.findBranches(user.id, provider ?? null, wanted);
    return read.value.items.map(toBranchDto);
  }

  @Get('installations')
  @ListOperation(
    'get_user_installations_api_user_installations_get',
    'What repositories can be narrowed down to',
    [String],
  )
  async installations(
    @CurrentUser() user: AuthUser,
    @Query() { provider }: UserInstallationsQueryDto,
  ): Promise<string[]> {
    const range = { position: 1, limit: MAX_INSTALLATIONS };
    return (await this.lists.findInstallations(user.id, provider, range)).read.value.items;
  }
}

function ListOperation(
  operationId: string,
  summary: string,
  type: typeof BranchesPageDto | [typeof RepositoryDto] | [typeof BranchDto] | [typeof String],
): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({ operationId, summary, description: 'Read from the git provider and kept for a minute.' }),
    ApiOkResponse({
      type,
      description: 'As the provider lists them',
      ...(Array.isArray(type) && type[0] === String && { example: ['acme'] }),
    }),
    ApiProblems(
      ...LIST_PROBLEMS,
      UNKNOWN,
      invalidInput(['query', 'provider'], 'enum', `Expected one of: ${PROVIDER_TYPES.join(', ')}.`),
    ),
  );
}
