import { repositorySegments } from '../../git-providers/repository-name.js';

const LONGEST_BRANCH = 250;
/** What git refuses in the name of a branch (git-check-ref-format), and a leading dash, which would be an option. */
const NO_BRANCH = /^-|^\/|\/$|\/\/|^\.|\/\.|\.\.|\.$|\.lock(\/|$)|@\{|^@$|[\s~^:?*[\\\p{Cc}]/u;

/** The sentence against a text that cannot name a repository, or null. */
export function repositoryProblem(name: string): string | null {
  return repositorySegments(name)
    ? null
    : 'Expected the full name of a repository, such as octo/app, not its address.';
}

/** The sentence against a text that cannot name a branch, or null. */
export function branchProblem(name: string): string | null {
  return name === '' || name.length > LONGEST_BRANCH || NO_BRANCH.test(name)
    ? 'Expected the name of a branch, such as main or feature/parser.'
    : null;
}
