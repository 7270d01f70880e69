import { createHmac, randomBytes } from 'node:crypto';
import type { GuardedHttpClient, GuardedRequestInit } from '@slipway/common/http/guarded-http.client.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import { boundedCall, GitProviderError } from '../git-provider.js';
import { providerErrorFromUpstream, retryAfterSeconds } from '../provider-errors.js';
import { retryOnce, type RetryTiming } from '../provider-http.js';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import {
  type GitServerToken,
  type KeycloakTokens,
  mapKeycloakError,
  parseGitServerToken,
  parseKeycloakTokens,
} from './enterprise-sso.mapper.js';

export interface KeycloakOptions {
  /** Realm address, such as `https://sso.example.com/realms/main`. */
  issuer: string;
  /** Alias of the identity provider that is the git server. */
  alias: string;
  clientId: string | null;
  clientSecret: string | null;
  /** Keycloak's identity brokering API: `v1` GET with a bearer token, `v2` POST with client credentials. */
  apiVersion: 'v1' | 'v2';
}

/** Milliseconds for each request of a lookup. */
const LOOKUP_BUDGET_MS = 8_000;

/**
 * Keycloak (https://www.keycloak.org/docs/latest/server_development/#retrieving-external-idp-tokens). A lookup has its
 * own deadline: several callers can wait for it, and a rotated refresh token must not get lost.
 */
export class EnterpriseSsoClient {
  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: KeycloakOptions & { timing: RetryTiming },
  ) {}

  /**
   * Exchanges a token, once: where Keycloak rotates refresh tokens, the second use of one ends the session.
   * @throws GitProviderError `unauthorized` when Keycloak rejects the token
   */
  async exchangeRefreshToken(refreshToken: string, userId?: string): Promise<KeycloakTokens> {
    try {
      const url = `${this.options.issuer}/protocol/openid-connect/token`;
      const form = this.form({ grant_type: 'refresh_token', refresh_token: refreshToken });
      return required(parseKeycloakTokens(await this.send(url, form, userId)), url);
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  /** The git server's token. @throws GitProviderError `unauthorized` when Keycloak rejects the access token */
  async readGitServerToken(accessToken: string, userId?: string): Promise<GitServerToken> {
    const url = `${this.options.issuer}/broker/${encodeURIComponent(this.options.alias)}/token`;
    const init =
      this.options.apiVersion === 'v1'
        ? { headers: { authorization: `Bearer ${accessToken}` } }
        : this.form({ token: accessToken });
    return retryOnce(
      async () => required(parseGitServerToken(await this.send(url, init, userId)), url),
      boundedCall(LOOKUP_BUDGET_MS, this.options.timing.now()),
      this.options.timing,
    );
  }

  private async send(url: string, init: GuardedRequestInit, userId: string | undefined): Promise<string> {
    const response = await this.http.fetch(url, {
      ...init,
      headers: { accept: 'application/json', ...init.headers },
      timeoutMs: LOOKUP_BUDGET_MS,
      ...(userId !== undefined && { holder: userId }),
    });
    const text = await response.text();
    if (!response.ok) {
      throw new GitProviderError(mapKeycloakError(response.status, text), {
        retryAfterSeconds: retryAfterSeconds(response.headers, this.options.timing.now()),
      });
    }
    return text;
  }

  private form(fields: Record<string, string>): GuardedRequestInit {
    const { clientId, clientSecret } = this.options;
    const body = new URLSearchParams({
      ...fields,
      ...(clientId !== null && { client_id: clientId }),
      ...(clientSecret !== null && { client_secret: clientSecret }),
    });
    return {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: body.toString(),
    };
  }
}

function required<T>(value: T | null, url: string): T {
  if (value === null) {
    throw new UpstreamError('malformed', new URL(url).origin);
  }
  return value;
}

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
    // Time must not be cached, since the clock may be a test's.
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
