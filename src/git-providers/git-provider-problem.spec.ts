import { describe, expect, it } from '@jest/globals';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import { GitProviderError } from '@slipway/git-providers/git-provider.js';
import { gitProviderProblem } from './git-provider-problem.js';
import { providerErrorFromUpstream } from '@slipway/git-providers/provider-errors.js';

describe('gitProviderProblem', () => {
  it.each([
    ['unauthorized', 'unauthorized', 'invalid_git_token'],
    ['not_linked', 'unauthorized', 'invalid_git_token'],
    ['reauth_required', 'unauthorized', 'invalid_git_token'],
    ['rate_limited', 'rate_limited', 'rate_limited'],
    ['timeout', 'gateway_timeout', 'upstream_error'],
    ['unavailable', 'bad_gateway', 'upstream_error'],
    ['insufficient_scope', 'bad_gateway', 'upstream_error'],
    ['sso_required', 'bad_gateway', 'upstream_error'],
    ['unsupported', 'bad_gateway', 'upstream_error'],
  ] as const)('answers %s as %s with code %s', (code, kind, answer) => {
    const cause = new GitProviderError(code);
    expect(gitProviderProblem('gitlab', cause)).toMatchObject({ kind, code: answer, cause });
  });

  it.each([
    ['unsupported', 'No commits between main and topic', 'conflict', 'conflict'],
    ['insufficient_scope', 'Resource not accessible.', 'forbidden', 'forbidden'],
  ] as const)('passes on why, for %s (%s)', (code, reason, kind, answer) => {
    const cause = new GitProviderError(code, { reason });
    expect(gitProviderProblem('github', cause)).toMatchObject({
      kind,
      code: answer,
      cause,
      message: expect.stringMatching(/[^.]\.$/),
    });
    expect(gitProviderProblem('github', cause).message).toContain(reason);
  });

  it('says whose limit it is', () => {
    const ours = providerErrorFromUpstream(new UpstreamError('share', 'https://git.example.com'));
    const remembered = new GitProviderError('rate_limited', { cause: ours });
    for (const error of [ours, remembered]) {
      expect(gitProviderProblem('github', error)).toMatchObject({
        kind: 'rate_limited',
        message: expect.stringContaining('You have'),
      });
    }
    expect(gitProviderProblem('github', ours).retryAfterSeconds).toBe(2);
  });

  it('passes on how long to wait, and names a time when the provider does not', () => {
    const told = new GitProviderError('rate_limited', { retryAfterSeconds: 41 });
    expect(gitProviderProblem('github', told).retryAfterSeconds).toBe(41);
    expect(gitProviderProblem('github', new GitProviderError('rate_limited')).retryAfterSeconds).toBe(60);
  });
});
