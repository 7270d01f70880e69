import { Controller, Get, Query } from '@nestjs/common';
import { ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser, UserId } from '../auth/auth.decorators.js';
import { ApiRoute, badInput } from '@slipway/api/openapi/api-route.js';
import { OrNull, Shown } from '@slipway/api/openapi/responses.js';
import { Choice, Integer, Text } from '@slipway/api/validation/field-decorators.js';
import { PROVIDER_TYPES, type ProviderType } from '@slipway/git-providers/git-provider.js';
import type {
  FoundBranch,
  FoundRepository,
  RepositorySort,
} from '@slipway/git-providers/repository-lists.js';
import { type ProviderListing, RepositoryListsService } from '../git-providers/repository-lists.service.js';
import {
  BranchDto,
  BranchPart,
  Installation,
  LIST_PROBLEMS,
  Repository,
  RepositoryDto,
  toBranchDto,
  toRepositoryDto,
  UNKNOWN_REPOSITORY,
} from '../v1/git/repository-lists.dto.js';

const DEFAULT_LIMIT = 30;
const MAX_LIMIT = 100;
const MAX_QUERY_LENGTH = 256;
const SORT_FIELDS = ['stars', 'forks', 'updated'] as const;
const MAX_PAGE = 999_999_999;

function SelectedProvider(byDefault = 'the first that the user has a token for'): PropertyDecorator {
  return Choice(`Which provider; by default ${byDefault}.`, {
    values: PROVIDER_TYPES,
    example: 'github',
  });
}

function PerPage(): PropertyDecorator {
  return Integer('Entries at most.', { minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT });
}

function PageNumber(): PropertyDecorator {
  return Integer('Which page: 1, or what the page before named.', {
    minimum: 1,
    maximum: MAX_PAGE,
    default: 1,
  });
}

class UserRepositoriesQueryDto {
  @SelectedProvider() selected_provider?: ProviderType;
  @Text('Taken and not used: the most recently active come first.', { example: 'pushed' }) sort?: string;
  @PageNumber() page = 1;
  @PerPage() per_page = DEFAULT_LIMIT;
  @Installation() installation_id?: string;
}

class SearchUserRepositoriesQueryDto {
  @Text('Part of a name, `owner/` and part of a name, or the address of a repository.', {
    required: true,
    maxLength: MAX_QUERY_LENGTH,
    trim: true,
    example: 'checkout',
  })
  query: string;

  @SelectedProvider() selected_provider?: ProviderType;

  // The older web application asks for 500 where it wants all.
  @Integer(`Repositories at most; more than ${MAX_LIMIT} are as many as ${MAX_LIMIT}.`, {
    minimum: 1,
    maximum: 1_000,
    default: DEFAULT_LIMIT,
  })
  per_page = DEFAULT_LIMIT;

  @Choice('What to order by.', { values: SORT_FIELDS, example: 'stars' }) sort?: (typeof SORT_FIELDS)[number];
  @Choice('Which way to order.', { values: ['asc', 'desc'], example: 'desc' }) order?: 'asc' | 'desc';
}

class SearchUserBranchesQueryDto {
  @Repository() repository: string;
  @BranchPart('Part of a name.') query: string;
  @SelectedProvider('the first with such a repository') selected_provider?: ProviderType;
  @PerPage() per_page = DEFAULT_LIMIT;
}

class RepositoryBranchesQueryDto {
  @Repository() repository: string;
  @PageNumber() page = 1;
  @PerPage() per_page = DEFAULT_LIMIT;
}

class UserInstallationsQueryDto {
  @Choice('Which provider.', { required: true, values: PROVIDER_TYPES, example: 'github' })
  provider: ProviderType;
}

@ApiSchema({ name: 'PaginatedBranchesResponse' })
class BranchesPageDto {
  @ApiProperty({ type: [BranchDto] }) branches: BranchDto[];
  @ApiProperty({ example: false }) has_next_page: boolean;
  @Shown('The next page has the number after it.', 1, { type: 'integer' }) current_page: number;
  @ApiProperty({ type: 'integer', example: DEFAULT_LIMIT }) per_page: number;
  @OrNull(null, { description: 'Not counted.' }) total_count: null;
}

function toSearchSort({ sort, order }: SearchUserRepositoriesQueryDto): RepositorySort | null {
  return sort === undefined ? null : `${sort}-${order ?? 'desc'}`;
}

/** Each names the next page, as GitHub's `Link` header would. */
function toLinkedDtos({ provider, read }: ProviderListing<FoundRepository>): RepositoryDto[] {
  const { items, next } = read.value;
  const link = next === null ? null : `</api/user/repositories?page=${next}>; rel="next"`;
  return items.map((found) => toRepositoryDto(found, provider, link));
}

/** Clients add one to `current_page` for the next page, so this is one less than the provider's next position. */
function toBranchesPageDto(
  { read }: ProviderListing<FoundBranch>,
  page: number,
  perPage: number,
): BranchesPageDto {
  const { items, next } = read.value;
  return {
    branches: items.map(toBranchDto),
    has_next_page: next !== null,
    current_page: next === null ? page : next - 1,
    per_page: perPage,
    total_count: null,
  };
}

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
  @ApiRoute('get_user_repositories_', 'Repositories of the user', {
    ...LIST,
    answer: { type: [RepositoryDto], description: LISTED },
  })
  async repositories(
    @CurrentUser() user: AuthUser,
    @Query() { selected_provider: provider, ...query }: UserRepositoriesQueryDto,
  ): Promise<RepositoryDto[]> {
    const { installation_id: installation = null, page: position, per_page: limit } = query;
    const wanted = { text: null, sort: null, installation, position, limit };
    return toLinkedDtos(await this.lists.findRepositories(user, provider ?? null, wanted));
  }

  @Get('search/repositories')
  @ApiRoute('search_repositories_', 'Repositories by part of a name', {
    ...LIST,
    answer: { type: [RepositoryDto], description: LISTED },
  })
  async searchRepositories(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchUserRepositoriesQueryDto,
  ): Promise<RepositoryDto[]> {
    const { query: text, per_page: limit, selected_provider: provider = null } = query;
    const range = { installation: null, position: 1, limit: Math.min(limit, MAX_LIMIT) };
    const wanted = { ...range, text: text === '' ? null : text, sort: toSearchSort(query) };
    return toLinkedDtos(await this.lists.findRepositories(user, provider, wanted));
  }

  @Get('repository/branches')
  @ApiRoute('get_repository_branches_', 'Branches of a repository', {
    ...LIST,
    answer: { type: BranchesPageDto, description: LISTED },
  })
  async branches(
    @CurrentUser() user: AuthUser,
    @Query() { repository, page, per_page: limit }: RepositoryBranchesQueryDto,
  ): Promise<BranchesPageDto> {
    const wanted = { repository, text: null, position: page, limit };
    return toBranchesPageDto(await this.lists.findBranches(user, null, wanted), page, limit);
  }

  @Get('search/branches')
  @ApiRoute('search_user_branches', 'Branches by part of a name', {
    ...LIST,
    answer: { type: [BranchDto], description: LISTED },
  })
  async searchBranches(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchUserBranchesQueryDto,
  ): Promise<BranchDto[]> {
    const { repository, query: text, per_page: limit, selected_provider: provider } = query;
    const wanted = { repository, text: text === '' ? null : text, position: 1, limit };
    const { read } = await this.lists.findBranches(user, provider ?? null, wanted);
    return read.value.items.map(toBranchDto);
  }

  @Get('installations')
  @ApiRoute('get_user_installations_', 'What repositories can be narrowed down to', {
    ...LIST,
    answer: { type: [String], description: LISTED, example: ['acme'] },
  })
  async installations(
    @UserId() userId: string,
    @Query() { provider }: UserInstallationsQueryDto,
  ): Promise<string[]> {
    const range = { position: 1, limit: MAX_INSTALLATIONS };
    return (await this.lists.findInstallations(userId, provider, range)).read.value.items;
  }
}
