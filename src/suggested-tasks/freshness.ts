import type { ForgeKind, ProviderErrorCode, ProviderWork } from '../git-providers/git-provider.types.js';

const FRESH_MS = 60_000;
const FRESH_BITBUCKET_MS = 120_000;
/** A signal the provider is still computing is asked for again soon. */
const FRESH_UNKNOWN_MS = 15_000;
/** What a passing trouble hid is asked for again as soon as after a refusal of everything. */
const FRESH_PARTIAL_MS = 30_000;
/** Gaps that stay until somebody changes the token's rights. */
const LASTING_GAPS: readonly ProviderErrorCode[] = ['sso_required', 'insufficient_scope', 'unsupported'];
export const STALE_WHILE_REVALIDATE_MS = 10 * 60_000;
export const STALE_IF_ERROR_MS = 60 * 60_000;
const LONGEST_REFUSAL_MS = 30_000;

/** How long a provider's work is served without asking again, in milliseconds. */
export function freshFor(kind: ForgeKind, work: ProviderWork): number {
  const isMissingForNow = work.gaps.some((code) => !LASTING_GAPS.includes(code));
  const usual = usuallyFreshFor(kind, work);
  return isMissingForNow ? Math.min(usual, FRESH_PARTIAL_MS) : usual;
}

/** How long a failure is remembered, in milliseconds: refusals briefly, passing troubles not at all. */
export function rememberFailureFor(code: ProviderErrorCode, retryAfterSeconds: number | null): number {
  switch (code) {
    case 'unavailable':
    case 'timeout':
      return 0;
    case 'rate_limited':
      return Math.min((retryAfterSeconds ?? 60) * 1000, LONGEST_REFUSAL_MS);
    default:
      return LONGEST_REFUSAL_MS;
  }
}

/** Whether older data may stand in for a failed refresh: only when the failure says nothing about the token's rights. */
export function mayServeStale(code: ProviderErrorCode): boolean {
  return code === 'unavailable' || code === 'timeout' || code === 'rate_limited';
}

function usuallyFreshFor(kind: ForgeKind, work: ProviderWork): number {
  if (kind.startsWith('bitbucket')) {
    return FRESH_BITBUCKET_MS;
  }
  return work.changeRequests.some((change) => change.conflicts === 'unknown') ? FRESH_UNKNOWN_MS : FRESH_MS;
}
