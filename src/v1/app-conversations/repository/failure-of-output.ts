import type { GitPrepareFailure } from '../../../agent-protocol/git-prepare.js';

/** What git, curl and the large servers write in English; the first match counts. */
const SIGNS: readonly [RegExp, GitPrepareFailure][] = [
  [/no space left on device|disk quota exceeded/i, 'no_space'],
  [/remote branch .* not found|couldn't find remote ref/i, 'branch_not_found'],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|returned error: 40[13]|access denied/i,
    'authentication',
  ],
  [/repository .*not found|returned error: 404/i, 'repository_not_found'],
  [
    /could not resolve|failed to connect|couldn't connect|connection (refused|reset|timed out)/i,
    'unreachable',
  ],
];

/** Why a clone failed that ran as a command. */
export function failureOfOutput(output: string): GitPrepareFailure {
  return SIGNS.find(([sign]) => sign.test(output))?.[1] ?? 'failed';
}
