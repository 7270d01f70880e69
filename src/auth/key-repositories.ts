import { DomainError } from '../common/errors/domain-error.js';
import { REPOSITORIES_TEXT } from '@slipway/git-providers/repository-name.js';
import { PROVIDER_TYPES, type ProviderType } from '@slipway/git-providers/git-provider.js';

/**
 * Which repositories a key is for: `github:owner/name`, or `gitlab:group/*` for all below the group, at any depth. In lower
 * case, as hosts take names of another case for the same; null: the key is for all that its user has.
 */
export type KeyRepositories = readonly string[] | null;

/** The repository of a row, as it was said at the start. */
export interface RowRepository {
  gitProvider: ProviderType | null;
  selectedRepository: string | null;
}

export const KEY_REPOSITORY = new RegExp(`^(?:${PROVIDER_TYPES.join('|')}):${REPOSITORIES_TEXT}$`);

/** Whether a key may do anything with what is about the repository. What has none is of no key for some repositories. */
export function isWithin(
  repositories: KeyRepositories,
  { gitProvider, selectedRepository }: RowRepository,
): boolean {
  return (
    repositories === null ||
    (gitProvider !== null &&
      selectedRepository !== null &&
      covers(repositories, `${gitProvider}:${selectedRepository}`))
  );
}

/** Whether all that another entry names is named by one of these. */
export function covers(repositories: readonly string[], entry: string): boolean {
  return entriesOf(entry).some((each) => repositories.includes(each));
}

/** The one provider where the repository is the key's; null where there is none, or more than one. */
export function providerWithin(repositories: readonly string[], repository: string): ProviderType | null {
  const found = PROVIDER_TYPES.filter((name) => covers(repositories, `${name}:${repository}`));
  return found.length === 1 ? (found[0] ?? null) : null;
}

/** All entries that name it: itself, and each group above it. SQL has the same: `repository_entries`. */
function entriesOf(entry: string): string[] {
  const parts = entry.toLowerCase().split('/');
  const groups = parts.slice(0, -1).map((_, index) => `${parts.slice(0, index + 1).join('/')}/*`);
  return [parts.join('/'), ...groups];
}

/**
 * SQL: what {@link isWithin} is of the columns; an index has it for those of conversations.
 * @param repositories parameter, not null
 */
export function withinRepositories(
  repositories: string,
  { provider, repository }: { provider: string; repository: string },
): string {
  return `(${repository} IS NOT NULL AND repository_entries(${provider}, ${repository}) && ${repositories}::text[])`;
}

export function outsideRepositories(repositories: readonly string[], why: string): DomainError {
  return new DomainError(
    'outside_repositories',
    `This key is for some repositories only (${named(repositories)}). ${why}`,
    {
      extensions: { repositories },
    },
  );
}

/** For what is about no repository, or about more than those of a key. */
export function notForSomeRepositories(repositories: readonly string[]): DomainError {
  return outsideRepositories(repositories, 'This needs a key for all that its user has.');
}

const MOST_NAMED = 3;

function named(repositories: readonly string[]): string {
  const more = repositories.length - MOST_NAMED;
  return [...repositories.slice(0, MOST_NAMED), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** @throws DomainError outside_repositories for what is about another repository, or none */
export function requireWithin(repositories: KeyRepositories, row: RowRepository): void {
  if (repositories !== null && !isWithin(repositories, row)) {
    throw outsideRepositories(repositories, 'Name one of them: selected_repository, with its git_provider.');
  }
}
