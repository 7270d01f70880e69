import type { GitPrepareFailure } from '../../agent-protocol/git-prepare.js';

/** What git, curl and the large servers write; first match counts. */
const SIGNS: readonly [RegExp, GitPrepareFailure][] = [
  [/no space left on device|disk quota exceeded/i, 'no_space'],
  [/remote branch .* not found|couldn't find remote ref|no such ref was fetched/i, 'branch_not_found'],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|returned error: 40[13]|access denied|permission to .* denied/i,
    'authentication',
  ],
  [/repository .*not found|returned error: 404|project you were looking for/i, 'repository_not_found'],
  [
    /could not resolve (host|proxy)|failed to connect|couldn't connect|connection (refused|reset|timed out)|ssl|certificate/i,
    'unreachable',
  ],
];

/** Why git failed, by what it wrote (in English, as with `LC_ALL=C`). */
export function prepareFailure(output: string): GitPrepareFailure {
  return SIGNS.find(([sign]) => sign.test(output))?.[1] ?? 'failed';
}
