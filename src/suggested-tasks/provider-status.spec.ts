import { describe, expect, it } from '@jest/globals';
import { GitProviderError, type ProviderErrorCode } from '@slipway/git-providers/git-provider.js';
import { allProvidersFailed, type ProviderStatus, providerStatusHeader } from './provider-status.js';

function failures(...codes: ProviderErrorCode[]): Parameters<typeof allProvidersFailed>[0] {
  return codes.map((code, index) => ({
    provider: index === 0 ? 'github' : 'gitlab',
    error: new GitProviderError(code, { retryAfterSeconds: code === 'rate_limited' ? 40 + index : null }),
  }));
}

describe('allProvidersFailed', () => {
  it.each<[ProviderErrorCode[], string]>([
    [['unauthorized'], 'unauthorized'],
    [['unauthorized', 'not_linked'], 'unauthorized'],
    [['reauth_required', 'unauthorized'], 'unauthorized'],
    [['rate_limited', 'rate_limited'], 'rate_limited'],
    [['timeout', 'timeout'], 'gateway_timeout'],
    [['unauthorized', 'timeout'], 'bad_gateway'],
    [['unavailable'], 'bad_gateway'],
    [['insufficient_scope', 'rate_limited'], 'bad_gateway'],
  ])('%j is %s', (codes, kind) => {
    const error = allProvidersFailed(failures(...codes));

    expect(error.kind).toBe(kind);
    expect(error.code).toBe('git_providers_failed');
  });

  it('says for each provider why, and when the first of them may be asked again', () => {
    const error = allProvidersFailed(failures('rate_limited', 'rate_limited'));

    expect(error.retryAfterSeconds).toBe(40);
    expect(error.extensions['errors']).toEqual([
      { provider: 'github', code: 'rate_limited', retry_after: 40 },
      { provider: 'gitlab', code: 'rate_limited', retry_after: 41 },
    ]);
  });
});

describe('providerStatusHeader', () => {
  it.each<[ProviderStatus[], string]>([
    [[{ provider: 'github', status: 'ok', count: 12 }], 'github;status=ok;count=12'],
    [
      [
        { provider: 'github', status: 'ok', count: 0, truncated: true },
        { provider: 'gitlab', status: 'error', code: 'rate_limited', retryAfter: 41 },
      ],
      'github;status=ok;count=0;truncated=1, gitlab;status=error;code=rate_limited;retry_after=41',
    ],
    [
      [{ provider: 'bitbucket', status: 'stale', age: 300, count: 2 }],
      'bitbucket;status=stale;count=2;age=300',
    ],
    [
      [{ provider: 'enterprise_sso', status: 'partial', code: 'sso_required', count: 7 }],
      'enterprise_sso;status=partial;code=sso_required;count=7',
    ],
    [[], ''],
  ])('%j is %s', (statuses, expected) => {
    expect(providerStatusHeader(statuses)).toBe(expected);
  });
});
