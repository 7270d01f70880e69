import { repositorySegments } from '../common/repository-path.js';
import { GitProviderError } from './git-provider.js';

/** Splits `owner/name`. @throws GitProviderError with a reason for anything else */
export function requireOwnerAndName(repository: string): [owner: string, name: string] {
  const [owner, name] = repositorySegments(repository, 2) ?? [];
  if (owner === undefined || name === undefined) {
    throw new GitProviderError('unsupported', { reason: 'the repository is not named owner/name' });
  }
  return [owner, name];
}

/** Accepts a path of two or more parts. @throws GitProviderError with a reason for anything else */
export function requireRepositoryPath(repository: string): string {
  if (!repositorySegments(repository)) {
    throw new GitProviderError('unsupported', { reason: 'the repository is not named group/name' });
  }
  return repository;
}

const MAX_BRANCH_LENGTH = 250;

/** What git refuses (git-check-ref-format), and a leading dash, which would read as an option. */
const INVALID_BRANCH = /^[-./]|[./]$|\.\.|\/\/|\/\.|\.lock(\/|$)|@\{|^@$|[\s~^:?*[\\\p{Cc}]/u;

export const BRANCH_FORM = {
  pattern: String.raw`^(?![-./]|@$)(?!.*(?:\.\.|//|/\.|\.lock(?:/|$)|@\{))[^\s~^:?*\[\\\x00-\x1f\x7f-\x9f]*[^\s~^:?*\[\\\x00-\x1f\x7f-\x9f./]$`,
  maxLength: MAX_BRANCH_LENGTH,
};

export function isBranchName(name: string): boolean {
  return name !== '' && name.length <= MAX_BRANCH_LENGTH && !INVALID_BRANCH.test(name);
}
