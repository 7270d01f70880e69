import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { Shown } from '../common/openapi/responses.js';
import { Integer } from '../common/validation/number-fields.js';
import { Choice, Text } from '../common/validation/text-fields.js';
import { PROVIDER_TYPES, type ProviderType } from '../git-providers/git-provider.js';
import type { FoundBranch, FoundRepository, RepositorySort } from '../git-providers/repository-lists.js';
import type { ProviderListing } from '../git-providers/repository-lists.service.js';
import {
  BranchDto,
  BranchPart,
  Installation,
  Repository,
  type RepositoryDto,
} from '../v1/git/repository-lists.dto.js';
import { toBranchDto, toRepositoryDto } from '../v1/git/repository-lists.mapper.js';

const DEFAULT_LIMIT = 30;
export const MAX_LIMIT = 100;
const MAX_QUERY_LENGTH = 256;
const SORT_FIELDS = ['stars', 'forks', 'updated'] as const;
const MAX_PAGE = 999_999_999;

function SelectedProvider(): PropertyDecorator {
  return Choice('Which provider; by default the first that the user has a token for.', {
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

export class UserRepositoriesQueryDto {
  @SelectedProvider() selected_provider?: ProviderType;
  @Text('Taken and not used: the most recently active come first.', { example: 'pushed' }) sort?: string;
  @PageNumber() page?: number;
  @PerPage() per_page?: number;
  @Installation() installation_id?: string;
}

export class SearchUserRepositoriesQueryDto {
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
  per_page?: number;

  @Choice('What to order by.', { values: SORT_FIELDS, example: 'stars' }) sort?: (typeof SORT_FIELDS)[number];
  @Choice('Which way to order.', { values: ['asc', 'desc'], example: 'desc' }) order?: 'asc' | 'desc';
}

export class SearchUserBranchesQueryDto {
  @Repository() repository: string;
  @BranchPart('Part of a name.') query: string;
  @SelectedProvider() selected_provider?: ProviderType;
  @PerPage() per_page?: number;
}

export class RepositoryBranchesQueryDto {
  @Repository() repository: string;
  @PageNumber() page?: number;
  @PerPage() per_page?: number;
}

export class UserInstallationsQueryDto {
  @Choice('Which provider.', { required: true, values: PROVIDER_TYPES, example: 'github' })
  provider: ProviderType;
}

@ApiSchema({ name: 'PaginatedBranchesResponse' })
export class BranchesPageDto {
  @ApiProperty({ type: [BranchDto] }) branches: BranchDto[];
  @ApiProperty({ example: false }) has_next_page: boolean;
  @Shown('The next page has the number after it.', 1, { type: 'integer' }) current_page: number;
  @ApiProperty({ type: 'integer', example: DEFAULT_LIMIT }) per_page: number;
  @ApiProperty({ type: 'null', description: 'Not counted.', example: null }) total_count: null;
}

export function toSearchSort({ sort, order }: SearchUserRepositoriesQueryDto): RepositorySort | null {
  return sort === undefined ? null : `${sort}-${order ?? 'desc'}`;
}

/** Each names the next page, as GitHub's `Link` header would. */
export function toLinkedRepositoryDtos({
  provider,
  read,
}: ProviderListing<FoundRepository>): RepositoryDto[] {
  const { items, next } = read.value;
  const link = next === null ? null : `</api/user/repositories?page=${next}>; rel="next"`;
  return items.map((found) => toRepositoryDto(found, provider, link));
}

/** Clients add one to `current_page` for the next page, so this is one less than the provider's next position. */
export function toBranchesPageDto(
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
