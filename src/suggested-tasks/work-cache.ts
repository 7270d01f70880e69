import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import type { ProviderErrorCode, ProviderWork, WorkPolicy } from '../git-providers/git-provider.js';
import { type Cached, ProviderCache } from '../git-providers/provider-cache.js';

/** Parts that a passing failure hid are asked for again as soon as after a refusal of everything. */
const FRESH_PARTIAL_MS = 30_000;
/** Gaps that stay until somebody changes the token's rights. */
const LASTING_GAPS: readonly ProviderErrorCode[] = ['sso_required', 'insufficient_scope', 'unsupported'];

/** Together about 100 MB. */
const MAX_ENTRIES = 5_000;
const MAX_ITEMS = 200_000;

/** Keeps providers' work per credential, for a minute or two by the provider's policy. */
@Injectable()
export class WorkCache extends ProviderCache<ProviderWork> {
  constructor(clock: Clock) {
    super(clock, { maxEntries: MAX_ENTRIES, maxItems: MAX_ITEMS, countItems });
  }
}

/** A provider's work from the cache. */
export type CachedWork = Cached<ProviderWork>;

/** How long a provider's work is served without asking again, in milliseconds. */
export function workFreshFor(policy: WorkPolicy, work: ProviderWork): number {
  const isComputing = work.changeRequests.some(({ conflicts }) => conflicts === 'unknown');
  const usual = isComputing ? policy.freshWhileComputingMs : policy.freshMs;
  const isMissingForNow = work.gaps.some((code) => !LASTING_GAPS.includes(code));
  return isMissingForNow ? Math.min(usual, FRESH_PARTIAL_MS) : usual;
}

function countItems(work: ProviderWork): number {
  return (
    work.changeRequests.length +
    work.issues.length +
    work.recentRepositories.length +
    work.probedRepositories.length
  );
}
