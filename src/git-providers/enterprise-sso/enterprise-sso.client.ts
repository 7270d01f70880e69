import type { GuardedHttpClient, GuardedRequestInit } from '../../common/http/guarded-http.client.js';
import { UpstreamError } from '../../common/http/upstream-error.js';
import { boundedCall, GitProviderError } from '../git-provider.js';
import { providerErrorFromUpstream, retryAfterSeconds } from '../provider-errors.js';
import { retryOnce, type RetryTiming } from '../provider-http.js';
import {
  type GitServerToken,
  type KeycloakTokens,
  mapKeycloakError,
  parseGitServerToken,
  parseKeycloakTokens,
} from './enterprise-sso.mapper.js';

export interface KeycloakBrokerOptions {
  /** Realm address, such as `https://sso.example.com/realms/main`. */
  issuer: string;
  /** Alias of the identity provider that is the git server. */
  alias: string;
  clientId?: string;
  clientSecret?: string;
  /** Keycloak's identity brokering API: `v1` GET with a bearer token, `v2` POST with client credentials. */
  apiVersion: 'v1' | 'v2';
  timing: RetryTiming;
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
    private readonly options: KeycloakBrokerOptions,
  ) {}

  /**
   * Exchanges a token, once: where Keycloak rotates refresh tokens, the second use of one ends the session.
   * @throws GitProviderError `unauthorized` when Keycloak rejects the token
   */
  async exchangeRefreshToken(refreshToken: string, userId?: string): Promise<KeycloakTokens> {
    try {
      const url = `${this.issuer()}/protocol/openid-connect/token`;
      const form = this.form({ grant_type: 'refresh_token', refresh_token: refreshToken });
      return required(parseKeycloakTokens(await this.send(url, form, userId)), url);
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  /** The git server's token. @throws GitProviderError `unauthorized` when Keycloak rejects the access token */
  async readGitServerToken(accessToken: string, userId?: string): Promise<GitServerToken> {
    const url = `${this.issuer()}/broker/${encodeURIComponent(this.options.alias)}/token`;
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
      ...(clientId === undefined ? {} : { client_id: clientId }),
      ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
    });
    return {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: body.toString(),
    };
  }

  private issuer(): string {
    return this.options.issuer.replace(/\/+$/, '');
  }
}

function required<T>(value: T | null, url: string): T {
  if (value === null) {
    throw new UpstreamError('malformed', new URL(url).origin);
  }
  return value;
}
