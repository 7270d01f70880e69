import { createHmac, randomBytes } from 'node:crypto';
import { BoundedCache } from '../../common/bounded-cache.js';
import type { GitServerToken } from './enterprise-sso.mapper.js';

export interface Successor {
  token: string;
  isStored: boolean;
}

export interface EnterpriseSsoTokenCacheOptions {
  maxEntries?: number;
  now?: () => number;
}

const DEFAULT_MAX_ENTRIES = 10_000;
const SUCCESSOR_TTL_MS = 3_600_000;

/**
 * Git-server tokens by keyed hash of the stored Keycloak token, in memory, with one lookup at a time per stored
 * token. Also remembers successors of rotated refresh tokens, for callers that still hold the old one.
 */
export class EnterpriseSsoTokenCache {
  private readonly tokens: BoundedCache<string, GitServerToken>;
  private readonly successors: BoundedCache<string, Successor>;
  private readonly lookups = new Map<string, Promise<GitServerToken>>();
  private readonly hashKey = randomBytes(32);

  constructor(options: EnterpriseSsoTokenCacheOptions = {}) {
    const entries = options.maxEntries ?? DEFAULT_MAX_ENTRIES;
    const now = options.now ?? Date.now;
    // Without a cached time, since the clock may be a test's.
    const perf = { now: () => now() };
    this.tokens = new BoundedCache(entries, { perf, ttlResolution: 0 });
    this.successors = new BoundedCache(entries, { perf, ttlResolution: 0, ttl: SUCCESSOR_TTL_MS });
  }

  /** The cached token, else the result of `lookUp`. `scope` is the Keycloak realm and alias. Failures are not kept. */
  async get(scope: string, stored: string, lookUp: () => Promise<GitServerToken>): Promise<GitServerToken> {
    const key = this.key(scope, stored);
    const kept = this.tokens.get(key);
    if (kept) {
      return kept;
    }
    const running = this.lookups.get(key);
    if (running) {
      return running;
    }
    const lookup = lookUp();
    this.lookups.set(key, lookup);
    try {
      const found = await lookup;
      const successor = this.successors.get(key);
      for (const name of [key, ...(successor ? [this.key(scope, successor.token)] : [])]) {
        if (found.keepMs > 0) {
          this.tokens.set(name, found, { ttl: found.keepMs });
        }
      }
      return found;
    } finally {
      this.lookups.delete(key);
    }
  }

  /** Forgets a token that the git server refused, unless a newer one has taken its place. */
  drop(scope: string, stored: string, refused: GitServerToken): void {
    const key = this.key(scope, stored);
    if (this.tokens.peek(key) === refused) {
      this.tokens.delete(key);
    }
  }

  successorOf(scope: string, stored: string): Successor | undefined {
    return this.successors.get(this.key(scope, stored));
  }

  /** Notes that `used`, itself possibly a successor of `stored`, was replaced by `token`. */
  noteRotation(scope: string, stored: string, used: string, token: string): Successor {
    const successor = { token, isStored: false };
    for (const old of [stored, used]) {
      this.successors.set(this.key(scope, old), successor);
    }
    return successor;
  }

  private key(scope: string, stored: string): string {
    return createHmac('sha256', this.hashKey).update(`${scope}\n${stored}`).digest('base64url');
  }
}
