import { createHmac, randomBytes } from 'node:crypto';
import { BoundedCache } from '../../common/bounded-cache.js';
import type { Signal } from '../git-provider.js';

export interface BitbucketIdentity {
  /** In braces, as Bitbucket writes it. */
  uuid: string;
  workspaces: string[];
  truncated: boolean;
}

const IDENTITY_TTL_MS = 60 * 60 * 1000;
/** Bounds the life of a signal whose key did not notice a change. */
const SIGNAL_TTL_MS = 10 * 60 * 1000;
const MAX_IDENTITIES = 5_000;
const MAX_SIGNALS = 50_000;

/**
 * Identities, and details of unchanged pull requests, as Bitbucket allows 1,000 requests an hour. Bounded, and
 * separate for each token.
 */
export class BitbucketCache {
  /** Tokens are remembered as keyed hashes only, and the key dies with the process. */
  private readonly secret = randomBytes(32);
  private readonly identities: BoundedCache<string, BitbucketIdentity>;
  private readonly signals: BoundedCache<string, Signal>;

  /** `now` returns epoch milliseconds. */
  constructor(now: () => number) {
    const common = { perf: { now }, ttlResolution: 0 };
    this.identities = new BoundedCache(MAX_IDENTITIES, { ...common, ttl: IDENTITY_TTL_MS });
    this.signals = new BoundedCache(MAX_SIGNALS, { ...common, ttl: SIGNAL_TTL_MS });
  }

  ownerOf(apiUrl: string, token: string): string {
    return createHmac('sha256', this.secret).update(`${apiUrl}\n${token}`).digest('base64url');
  }

  identity(owner: string): BitbucketIdentity | undefined {
    return this.identities.get(owner);
  }

  rememberIdentity(owner: string, identity: BitbucketIdentity): void {
    this.identities.set(owner, identity);
  }

  forgetIdentity(owner: string): void {
    this.identities.delete(owner);
  }

  /** `subject` contains everything that changes when the signal changes. */
  signal(owner: string, subject: string): Signal | undefined {
    return this.signals.get(`${owner} ${subject}`);
  }

  rememberSignal(owner: string, subject: string, signal: Signal): void {
    this.signals.set(`${owner} ${subject}`, signal);
  }
}
