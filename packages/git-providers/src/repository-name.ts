import { GitProviderError } from './git-provider.js';

/** Groups on GitLab nest up to 20 deep. */
const MAX_SEGMENTS = 22;
const MAX_LENGTH = 512;

/** Not only dots; personal projects of Data Center begin with `~`. */
const SEGMENT_TEXT = String.raw`(?:~\.+|~?(?:[A-Za-z0-9_]|\.+[A-Za-z0-9_-])[A-Za-z0-9._-]*)`;
const SEGMENT = new RegExp(`^${SEGMENT_TEXT}$`);

export const REPOSITORY_FORM = {
  pattern: `^${SEGMENT_TEXT}(?:/${SEGMENT_TEXT}){1,${MAX_SEGMENTS - 1}}$`,
  maxLength: MAX_LENGTH,
};

/** A repository, or `group/*` for all below a group. */
export const REPOSITORIES_TEXT = String.raw`${SEGMENT_TEXT}(?:/${SEGMENT_TEXT}){0,${MAX_SEGMENTS - 2}}/(?:${SEGMENT_TEXT}|\*)`;

/** The parts (`exactly` as many, or two or more), each safe in an address and as an argument of git; else null. */
export function repositorySegments(repository: string, exactly?: number): string[] | null {
  const segments = repository.split('/');
  const isCount =
    exactly === undefined
      ? segments.length >= 2 && segments.length <= MAX_SEGMENTS
      : segments.length === exactly;
  return isCount && repository.length <= MAX_LENGTH && segments.every((segment) => SEGMENT.test(segment))
    ? segments
    : null;
}

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
