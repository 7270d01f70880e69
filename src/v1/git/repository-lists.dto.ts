import { ApiProperty } from '@nestjs/swagger';
import type { Response } from 'express';
import { documented, type DocumentedProblem, thrown } from '@slipway/api/openapi/api-route.js';
import { OrNull, Shown, ShownOrNull, TimeOrNull } from '@slipway/api/openapi/responses.js';
import { NextPageId, PageOf, PageQuery } from '@slipway/api/pagination/page.dto.js';
import {
  encodePageId,
  type PageRequest,
  parseNumberCursor,
  parsePageId,
} from '@slipway/api/pagination/page.js';
import { Choice, Text } from '@slipway/api/validation/field-decorators.js';
import { PROVIDER_TYPES, type ProviderType } from '@slipway/git-providers/git-provider.js';
import { invalidGitToken, noGitProvider } from '../../git-providers/git-provider-problem.js';
import { ShownProvider } from '../../git-providers/repository-fields.js';
import {
  type BranchQuery,
  type FoundBranch,
  type FoundRepository,
  type ListRange,
  REPOSITORY_SORTS,
  type RepositoryQuery,
  type RepositorySort,
} from '@slipway/git-providers/repository-lists.js';
import type { ProviderListing } from '../../git-providers/repository-lists.service.js';
import { providerStatusHeader } from '../../suggested-tasks/provider-status.js';

const MAX_QUERY_LENGTH = 256;

export const LIST_PROBLEMS: (DocumentedProblem | number)[] = [
  thrown(noGitProvider(), 'No valid API key, no stored token for the provider, or one that it refuses'),
  thrown(invalidGitToken('github')),
  502,
  504,
];

export const UNKNOWN_REPOSITORY = documented(
  404,
  'At github, there is no such repository, or the token cannot see it.',
  'Unknown to the provider, or not for this token',
);

function Provider(): PropertyDecorator {
  return Choice('Which of the providers that the user has a token for.', {
    required: true,
    values: PROVIDER_TYPES,
    example: 'github',
  });
}

export function Installation(): PropertyDecorator {
  const description = 'Only repositories of this installation, workspace or project.';
  return Text(description, { maxLength: MAX_QUERY_LENGTH, example: 'acme' });
}

export function Repository(): PropertyDecorator {
  return Text('Full name of the repository.', { required: true, maxLength: 512, example: 'acme/checkout' });
}

export function BranchPart(description: string): PropertyDecorator {
  return Text(description, { required: true, maxLength: MAX_QUERY_LENGTH, example: 'release' });
}

export class SearchRepositoriesQueryDto extends PageQuery('Repositories on a page.') {
  @Provider() provider: ProviderType;

  @Text(
    'Part of a name, `owner/` and part of a name, or the address of a repository. Without it: all repositories of the user, the most recently active first.',
    { maxLength: MAX_QUERY_LENGTH, trim: true, example: 'checkout' },
  )
  query?: string;

  @Installation() installation_id?: string;

  @Choice('Order of what a query finds, as far as the provider knows it.', {
    values: REPOSITORY_SORTS,
    example: 'updated-desc',
  })
  sort_order?: RepositorySort;
}

export class SearchBranchesQueryDto extends PageQuery('Branches on a page.', 30) {
  @Provider() provider: ProviderType;
  @Repository() repository: string;
  @BranchPart('Part of a name; empty for all branches.') query: string;
}

export class SearchInstallationsQueryDto extends PageQuery('Installations on a page.') {
  @Provider() provider: ProviderType;
}

export class RepositoryDto {
  @ApiProperty({ description: 'As the provider writes it.', example: '81204' }) id: string;
  @ApiProperty({ example: 'acme/checkout' }) full_name: string;
  @ShownProvider() git_provider: ProviderType;
  @ApiProperty({ example: false }) is_public: boolean;
  @ApiProperty({ type: 'integer', nullable: true, example: 12 }) stargazers_count: number | null;
  @ShownOrNull('Null here; the older routes name the next page in it.', null) link_header: string | null;
  @TimeOrNull('2026-11-20T16:45:12.000Z') pushed_at: string | null;

  @OrNull('organization', { enum: ['user', 'organization', null] })
  owner_type: 'user' | 'organization' | null;

  @ShownOrNull('The default branch.', 'main') main_branch: string | null;
}

export class RepositoryPageDto extends PageOf(RepositoryDto) {}

export class BranchDto {
  @ApiProperty({ example: 'main' }) name: string;
  @ApiProperty({ example: '4f1c5f2fdc0a3a3b6f4d4a1c0f6b1f0a2c9d7e11' }) commit_sha: string;
  @ApiProperty({ description: 'False where the provider does not tell.', example: true }) protected: boolean;
  @TimeOrNull('2026-11-20T16:45:12.000Z') last_push_date: string | null;
}

export class BranchPageDto extends PageOf(BranchDto) {}

export class InstallationPageDto {
  @Shown(
    "Ids of a GitHub App's installations, slugs of Bitbucket's workspaces, or keys of its projects.",
    ['acme'],
    { type: [String] },
  )
  items: string[];

  @NextPageId() next_page_id: string | null;
}

/** A page id holds where the provider's next part begins, at most here. */
const MAX_POSITION = 999_999_999;

export function toRepositoryQuery(query: SearchRepositoriesQueryDto): RepositoryQuery {
  return {
    text: orNull(query.query),
    installation: orNull(query.installation_id),
    sort: query.sort_order ?? null,
    ...toListRange('repositories', query),
  };
}

export function toBranchQuery(query: SearchBranchesQueryDto): BranchQuery {
  return {
    repository: query.repository,
    text: orNull(query.query.trim()),
    ...toListRange('branches', query),
  };
}

type ListName = 'repositories' | 'branches' | 'installations';

/** @throws InvalidInputError for a page id that is not of this list */
export function toListRange(list: ListName, { page_id: pageId, limit }: PageRequest): ListRange {
  return { position: parsePageId(list, pageId, parseNumberCursor(MAX_POSITION)) ?? 1, limit };
}

export function toListPage<Found, Dto>(
  list: ListName,
  { provider, read }: ProviderListing<Found>,
  toDto: (found: Found, provider: ProviderType) => Dto,
): { items: Dto[]; next_page_id: string | null } {
  const { items, next } = read.value;
  return {
    items: items.map((found) => toDto(found, provider)),
    next_page_id: next === null ? null : encodePageId(list, String(next)),
  };
}

/** @param link names the next page; only the older routes set it */
export function toRepositoryDto(
  found: FoundRepository,
  provider: ProviderType,
  link: string | null = null,
): RepositoryDto {
  return {
    id: found.id,
    full_name: found.name,
    git_provider: provider,
    is_public: found.isPublic,
    stargazers_count: found.stars,
    link_header: link,
    pushed_at: toTime(found.activeAt),
    owner_type: found.ownerType,
    main_branch: found.defaultBranch,
  };
}

export function toBranchDto({ name, commit, isProtected, committedAt }: FoundBranch): BranchDto {
  return { name, commit_sha: commit, protected: isProtected, last_push_date: toTime(committedAt) };
}

function toTime(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString();
}

function orNull(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}

/** Sets the header that says how old the list is, as suggested tasks do. */
export function withStatus<T>(response: Response, listing: ProviderListing<T>): ProviderListing<T> {
  const { provider, read } = listing;
  const { stale, age, value } = read;
  const count = value.items.length;
  response.set(
    'X-Provider-Status',
    providerStatusHeader([
      stale ? { provider, status: 'stale', age, count } : { provider, status: 'ok', count },
    ]),
  );
  return listing;
}
