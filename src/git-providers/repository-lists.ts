/** Which part of a list to read. */
export interface ListRange {
  /** Where the part begins, in the provider's own counting: `next` of the part before, or 1. */
  position: number;
  /** Entries at most, from 1 to 100. */
  limit: number;
}

/** A part of a list. */
export interface Listing<T> {
  items: T[];
  /** Where the next part begins; null at the end. */
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

/** Which of the repositories that the user works with. */
export interface RepositoryQuery extends ListRange {
  /** Part of a name, or `owner/` and part of a name; null for all of them, the most recently active first. */
  text: string | null;
  /** One of the user's installations, as `listInstallations` names them; null for all. */
  installation: string | null;
  /** Of what a text finds; providers take what they know of it. */
  sort: RepositorySort | null;
}

export interface FoundRepository {
  /** The provider's own. */
  id: string;
  /** `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`. */
  name: string;
  isPublic: boolean;
  stars: number | null;
  /** Epoch milliseconds of the newest push or activity; null where the provider does not tell. */
  activeAt: number | null;
  ownerType: 'user' | 'organization' | null;
  defaultBranch: string | null;
}

/** Which branches of one repository. */
export interface BranchQuery extends ListRange {
  repository: string;
  /** Part of a name; null for all of them. */
  text: string | null;
}

export interface FoundBranch {
  name: string;
  /** Full hash. */
  commit: string;
  isProtected: boolean;
  /** Epoch milliseconds of the newest commit; null where the provider does not tell. */
  committedAt: number | null;
}

/** `owner` and the part of a name in `owner/part`; a null owner in a text without one. */
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
