import { createHash } from 'node:crypto';
import { defaultBranchOf } from './fake-change-requests.js';
import type { FakeRepository, FakeWorld } from './fake-world.js';

export interface FakeBranch {
  name: string;
  commit: string;
  isProtected: boolean;
  /** ISO 8601. */
  committedAt: string;
}

/** The default branch, which is protected, and the others. */
export function branchesOf(repository: FakeRepository): FakeBranch[] {
  const main = defaultBranchOf(repository);
  return [main, ...(repository.branches ?? [])].map((name) => ({
    name,
    commit: createHash('sha1').update(`${repository.name} ${name}`).digest('hex'),
    isProtected: name === main,
    committedAt: repository.activeAt,
  }));
}

/** Everything before the last slash. */
export function ownerOf({ name }: FakeRepository): string {
  return name.slice(0, name.lastIndexOf('/'));
}

/** The owners of a world's repositories, each once. */
export function ownersIn(world: FakeWorld): string[] {
  return [...new Set(world.repositories.map(ownerOf))];
}

export function isOwnedByUser(world: FakeWorld, repository: FakeRepository): boolean {
  return ownerOf(repository) === world.user.login;
}

/** A number of its own for each repository. */
export function repositoryId(world: FakeWorld, repository: FakeRepository): number {
  return 1_000 + world.repositories.indexOf(repository);
}

export function newestFirst(repositories: readonly FakeRepository[]): FakeRepository[] {
  return repositories.toSorted((a, b) => Date.parse(b.activeAt) - Date.parse(a.activeAt));
}

export function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}

/** One page of a list that is paged by `page`, from 1, and by a size. */
export function pageIn<T>(
  all: readonly T[],
  query: URLSearchParams,
  { size, usual, most = 100 }: { size: string; usual: number; most?: number },
): { items: T[]; page: number; size: number; hasMore: boolean } {
  const length = Math.min(Number(query.get(size) ?? usual), most);
  const page = Number(query.get('page') ?? 1);
  const end = page * length;
  return { items: all.slice(end - length, end), page, size: length, hasMore: end < all.length };
}
