import { describe, expect, it } from '@jest/globals';
import { providerStatusHeader, type ProviderStatus } from './provider-status.js';

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
