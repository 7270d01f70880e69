export interface ListRange {
  /** Counts as the provider does: `next` of the previous part, or 1. */
  position: number;
  limit: number;
}

export interface Listing<T> {
  items: T[];
  /** The position of the next part; null at the end. */
  next: number | null;
}

export const REPOSITORY_SORTS = [
  'stars-desc',
  'stars-asc',
  'forks-desc',
  'forks-asc',
  'updated-desc',
  'updated-asc',
] as const;
export type RepositorySort = (typeof REPOSITORY_SORTS)[number];

export interface RepositoryQuery extends ListRange {
  /** Part of a name, or `owner/part`; null for all, the most recently active first. */
  text: string | null;
  installation: string | null;
  sort: RepositorySort | null;
}

export interface FoundRepository {
  id: string;
  /** `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`. */
  name: string;
  isPublic: boolean;
  stars: number | null;
  /** Epoch milliseconds of the newest push or activity; null if unknown. */
  activeAt: number | null;
  ownerType: 'user' | 'organization' | null;
  defaultBranch: string | null;
}

export interface BranchQuery extends ListRange {
  repository: string;
  text: string | null;
}

export interface FoundBranch {
  name: string;
  commit: string;
  isProtected: boolean;
  /** Epoch milliseconds; null if unknown. */
  committedAt: number | null;
}

/** Splits `owner/part`; the owner is null in a text without one. */
export function splitOwner(text: string): { owner: string | null; part: string } {
  const slash = text.lastIndexOf('/');
  return slash > 0
    ? { owner: text.slice(0, slash), part: text.slice(slash + 1) }
    : { owner: null, part: text.replace(/^\//, '') };
}

/** A page of a list that counts pages from 1. */
export function pageOf<T>(items: T[], { position }: ListRange, hasMore: boolean): Listing<T> {
  return { items, next: hasMore && items.length > 0 ? position + 1 : null };
}

/** A part of a list that was read as a whole, counted by entries from 1. */
export function sliceOf<T>(all: readonly T[], { position, limit }: ListRange): Listing<T> {
  const end = position - 1 + limit;
  return { items: all.slice(position - 1, end), next: end < all.length ? end + 1 : null };
}
