import type { Response } from 'express';
import {
  encodePageId,
  type PageRequest,
  parseNumberCursor,
  parsePageId,
} from '../../common/pagination/page.js';
import type { ProviderType } from '../../git-providers/git-provider.js';
import type {
  BranchQuery,
  FoundBranch,
  FoundRepository,
  ListRange,
  RepositoryQuery,
} from '../../git-providers/repository-lists.js';
import type { ProviderListing } from '../../git-providers/repository-lists.service.js';
import { providerStatusHeader } from '../../suggested-tasks/provider-status.js';
import type {
  BranchDto,
  RepositoryDto,
  SearchBranchesQueryDto,
  SearchRepositoriesQueryDto,
} from './repository-lists.dto.js';

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
