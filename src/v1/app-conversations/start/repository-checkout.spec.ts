import { describe, expect, it } from '@jest/globals';
import type { GitPrepareFailure } from '@slipway/agent-protocol/git.js';
import { checkoutFailure, failureOfOutput } from './repository-checkout.js';

const PLAN = { provider: 'github', name: 'octo/app', branch: 'dev', credential: null } as const;
const WITH_TOKEN = { ...PLAN, credential: { username: 'x', password: 'ghp_secret' } };

describe('checkoutFailure', () => {
  it.each<[GitPrepareFailure, RegExp, RegExp]>([
    ['authentication', /store a token for github/, /refused the github token/],
    ['repository_not_found', /or store a token for github/, /whether the github token may see it/],
    ['branch_not_found', /branch dev does not exist in octo\/app/, /check selected_branch/],
    ['unreachable', /cannot be reached/, /cannot be reached/],
    ['directory_not_empty', /start without sandbox_id/, /start without sandbox_id/],
    ['no_space', /no space left/, /no space left/],
    ['timeout', /in time/, /in time/],
    ['failed', /could not be cloned\./, /could not be cloned\./],
  ])('says what to do: %s', (failure, anonymous, withToken) => {
    expect(checkoutFailure(PLAN, failure, '')).toMatch(anonymous);
    expect(checkoutFailure(WITH_TOKEN, failure, '')).toMatch(withToken);
  });

  it('says why the GitHub App gave no token where one is wanted', () => {
    const plan = { ...PLAN, withheld: 'the GitHub App is not installed for octo/app' };
    expect(checkoutFailure(plan, 'authentication', '')).toMatch(/not installed for octo\/app/);
    expect(checkoutFailure(plan, 'repository_not_found', '')).toMatch(/not installed for octo\/app/);
    expect(checkoutFailure(plan, 'no_space', '')).toMatch(/no space left/);
  });

  it('ends with what git wrote, without the token', () => {
    expect(checkoutFailure(WITH_TOKEN, 'failed', 'fatal: ghp_secret is bad\n')).toBe(
      'The repository octo/app could not be cloned.\nfatal: ********** is bad',
    );
  });
});

describe('failureOfOutput', () => {
  it.each<[string, GitPrepareFailure]>([
    ['fatal: Remote branch nowhere not found in upstream origin', 'branch_not_found'],
    ["fatal: Authentication failed for 'https://github.com/a/b.git/'", 'authentication'],
    ["fatal: could not read Username for 'https://github.com': terminal prompts disabled", 'authentication'],
    ['error: The requested URL returned error: 403', 'authentication'],
    ['remote: Repository not found.', 'repository_not_found'],
    ['fatal: unable to access: Could not resolve host: git.example.com', 'unreachable'],
    ['fatal: write error: No space left on device', 'no_space'],
    ['something else', 'failed'],
  ])('%s', (output, failure) => {
    expect(failureOfOutput(output)).toBe(failure);
  });
});
