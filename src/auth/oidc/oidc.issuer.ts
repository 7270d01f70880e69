import { hash } from 'node:crypto';
import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import {
  createRemoteJWKSet,
  customFetch as jwksFetch,
  decodeJwt,
  decodeProtectedHeader,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import * as client from 'openid-client';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { HostAllowlist, isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { ServiceHttpClient } from '../../common/http/service-http.client.js';
import { AppConfig, proxyOf } from '../../config/app-config.js';
import type { OidcConfig, Role } from '../../config/oidc-config.js';
import { isRefusedGrant, reasonOf } from './issuer-failure.js';
import { isAccessToken, issuedAt, personSubject } from './person-claims.js';

const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'];
/** Seconds that clocks may differ. */
const CLOCK_TOLERANCE = 30;
/** Milliseconds between two requests for keys, however many tokens name unknown keys, and after a failure. */
const PAUSE_MS = 10_000;
/** After which keys and addresses are asked for again beside the request that notices. */
const FRESH_MS = 5 * 60_000;
/** Issuers whose access tokens are no JWTs, or are meant for the issuer alone: Google, and the server of an Okta organization. */
const OPAQUE_TOKENS = /^https:\/\/(?:accounts\.google\.com|[^/]+\.okta(?:preview)?\.com)\/?$/;
const JWT = /^eyJ[^.]*\.[^.]+\.[^.]+$/;
const TIMEOUT_MS = 8_000;
const MAX_RESPONSE_BYTES = 1024 * 1024;

/** The state of one sign-in, which its browser keeps. */
export interface SignInChecks {
  state: string;
  nonce: string;
  verifier: string;
}

/** What a back-channel logout names: a subject, a sign-in, or both; those that begin later are others. */
export interface EndedSignIn {
  issuer: string;
  subject: string | null;
  sid: string | null;
  tokenId: string;
  issuedAt: Date;
  /** When the logout token was issued, plus the clock skew that is allowed. */
  at: Date;
}

interface Discovered {
  configuration: client.Configuration;
  keys: ReturnType<typeof createRemoteJWKSet>;
  at: number;
}

export class OidcHttpClient extends ServiceHttpClient {}

/** The operator chose the issuer's address, so it may be a private one. */
export function createOidcHttpClient({ oidc, outbound }: AppConfig): OidcHttpClient {
  return new OidcHttpClient({
    allowlist: HostAllowlist.parse(oidc?.issuer ? [new URL(oidc.issuer).origin] : []),
    maxResponseBytes: MAX_RESPONSE_BYTES,
    timeoutMs: TIMEOUT_MS,
    proxy: proxyOf(outbound),
  });
}

/** The company's issuer (OpenID Connect Discovery 1.0): its addresses, its keys, its tokens. */
@Injectable()
export class OidcIssuer implements OnApplicationBootstrap {
  private readonly logger = new Logger(OidcIssuer.name);
  private discovered: Discovered | null = null;
  private discovering: Promise<Discovered> | null = null;
  /** When {@link discovering} failed; null while it goes on. */
  private failedAt: number | null = null;
  private hasToldOpaque = false;
  private lastKeys: { at: number; answer: Promise<Response> | null } = { at: -Infinity, answer: null };

  constructor(
    private readonly config: AppConfig,
    private readonly http: OidcHttpClient,
    private readonly clock: Clock,
  ) {}

  /** Not awaited: who has a key or a session gets in without the issuer. */
  onApplicationBootstrap(): void {
    const { issuer } = this.config.oidc ?? {};
    if (!issuer) {
      return;
    }
    if (issuer.startsWith('http:') && !isLoopbackHost(new URL(issuer).hostname)) {
      this.logger.warn('OIDC_ISSUER has no TLS: others on the way can sign in as any user', { issuer });
    }
    this.tellOpaque(OPAQUE_TOKENS.test(issuer));
    // What is wrong is logged there.
    this.discover().catch(() => undefined);
  }

  /** Whether people can sign in by it. */
  get signsIn(): boolean {
    return this.config.oidc !== null && this.config.oidc.clientId !== null;
  }

  /** Empty where no map gives roles. */
  get roleMap(): ReadonlyMap<string, Role> {
    return this.config.oidc?.roleMap ?? new Map<string, Role>();
  }

  /** Whether a bearer token claims to be of this issuer; proxies in front of the service may add tokens of others. */
  isOwnToken(token: string): boolean {
    const { issuer, audiences } = this.config.oidc ?? { issuer: null, audiences: [] };
    if (issuer === null || audiences.length === 0) {
      return false;
    }
    try {
      return withoutSlash(decodeJwt(token).iss ?? '') === withoutSlash(issuer);
    } catch {
      return false;
    }
  }

  /** @throws DomainError unauthorized with what is wrong with the token, unavailable while no key can be had */
  async verifyAccessToken(token: string): Promise<JWTPayload> {
    const payload = await this.verify(token, { audience: [...this.required.audiences] });
    if (!isAccessToken(decodeProtectedHeader(token), payload)) {
      throw new DomainError('unauthorized', 'Unauthorized: this is no access token.');
    }
    return payload;
  }

  /** OpenID Connect Back-Channel Logout 1.0, section 2.6. @throws DomainError unauthorized */
  async verifyLogoutToken(token: string): Promise<EndedSignIn> {
    const payload = await this.verify(token, {
      audience: this.clientId,
      maxTokenAge: '5m',
      requiredClaims: ['iat', 'jti', 'events'],
    });
    const events = payload['events'] as Record<string, unknown> | null;
    const isLogout = typeof events?.['http://schemas.openid.net/event/backchannel-logout'] === 'object';
    // When another claim identifies people, the stored subject is not `sub`.
    const subject = personSubject(payload, this.required.userClaim);
    const { iat = 0 } = payload;
    const sid = typeof payload['sid'] === 'string' ? payload['sid'] : null;
    if (!isLogout || payload['nonce'] !== undefined || (subject === null && sid === null)) {
      throw new DomainError('unauthorized', 'This is no logout token.');
    }
    const at = new Date((iat + CLOCK_TOLERANCE) * 1000);
    const tokenId = hash('sha256', payload.jti ?? '', 'base64url');
    return { issuer: payload.iss ?? '', subject, sid, tokenId, issuedAt: issuedAt(payload), at };
  }

  /** Returns the address where a browser begins a sign-in. @throws DomainError unavailable */
  async signInAddress(callback: string, { state, nonce, verifier }: SignInChecks): Promise<string> {
    const { configuration } = await this.discover();
    return client.buildAuthorizationUrl(configuration, {
      redirect_uri: callback,
      scope: this.required.scopes,
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).href;
  }

  /**
   * Exchanges the code of a callback.
   * @param address of the callback, as the browser asked for it
   * @throws DomainError unauthorized for a code or a token that is not right, unavailable
   */
  async exchange(
    address: URL,
    { state, nonce, verifier }: SignInChecks,
  ): Promise<{ claims: JWTPayload; refreshToken: string | null }> {
    const { configuration } = await this.discover();
    const tokens = await this.call('sign-in', () =>
      client.authorizationCodeGrant(configuration, address, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      }),
    );
    this.tellOpaque(!JWT.test(tokens.access_token));
    const refreshToken = tokens.refresh_token ?? null;
    return { claims: await this.claimsOf(configuration, tokens), refreshToken };
  }

  /** @throws DomainError unauthorized where the issuer refuses, unavailable */
  async refresh(refreshToken: string): Promise<{ claims: JWTPayload | null; refreshToken: string }> {
    const { configuration } = await this.discover();
    const tokens = await this.call('renewal', () => client.refreshTokenGrant(configuration, refreshToken));
    // The role is decided by the same claims as at the sign-in.
    const claims = tokens.id_token === undefined ? null : await this.claimsOf(configuration, tokens);
    return { claims, refreshToken: tokens.refresh_token ?? refreshToken };
  }

  /** @throws DomainError not_found without an issuer */
  get required(): OidcConfig {
    if (this.config.oidc === null) {
      throw new DomainError('not_found', 'No issuer is configured: set OIDC_ISSUER.');
    }
    return this.config.oidc;
  }

  /** Once, and only where they were to be keys. */
  private tellOpaque(isOpaque: boolean): void {
    const { issuer, audiences } = this.required;
    if (isOpaque && audiences.length > 0 && !this.hasToldOpaque) {
      this.hasToldOpaque = true;
      this.logger.warn('access tokens of this issuer are no JWTs: OIDC_AUDIENCE has no effect', { issuer });
    }
  }

  private get clientId(): string {
    const { clientId } = this.required;
    if (clientId === null) {
      throw new DomainError('not_found', 'People do not sign in by the issuer: set OIDC_CLIENT_ID.');
    }
    return clientId;
  }

  /** Those of the ID token, and what issuers such as Okta keep out of it: groups and addresses. */
  private async claimsOf(
    configuration: client.Configuration,
    { id_token: idToken = '', access_token: accessToken }: client.TokenEndpointResponse,
  ): Promise<JWTPayload> {
    const claims = await this.verify(idToken, { audience: this.clientId });
    const { emailClaim, groupsClaim } = this.required;
    const isComplete = [emailClaim, groupsClaim].every(
      (name) => claims[name.split('.')[0] ?? ''] !== undefined,
    );
    if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) {
      return claims;
    }
    const more = await this.call('userinfo', () =>
      client.fetchUserInfo(configuration, accessToken, String(claims.sub)),
    );
    return { ...more, ...claims };
  }

  private async verify(token: string, rules: JWTVerifyOptions): Promise<JWTPayload> {
    const { keys, configuration } = await this.discover();
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: configuration.serverMetadata().issuer,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE,
        currentDate: new Date(this.clock.now()),
        requiredClaims: ['sub', 'exp'],
        ...rules,
      });
      return payload;
    } catch (error) {
      throw this.refusal('token', error);
    }
  }

  private async discover(): Promise<Discovered> {
    const known = this.discovered;
    const now = this.clock.now();
    if (known === null || now - known.at >= FRESH_MS || now < known.at) {
      const asked = this.askInTurn(now);
      if (known === null) {
        return asked;
      }
      // What is known goes on while the issuer is away. What is wrong is logged there.
      asked.catch(() => undefined);
    }
    return known;
  }

  /** Strangers may ask as often as they like: all share one request, and a failure counts for a while. */
  private async askInTurn(now: number): Promise<Discovered> {
    if (this.failedAt !== null && (now < this.failedAt || now - this.failedAt >= PAUSE_MS)) {
      this.discovering = null;
      this.failedAt = null;
    }
    this.discovering ??= this.ask().then(
      (found) => {
        this.discovering = null;
        return found;
      },
      (error: unknown) => {
        this.failedAt = this.clock.now();
        throw error;
      },
    );
    return this.discovering;
  }

  private async ask(): Promise<Discovered> {
    const { issuer, clientSecret } = this.required;
    const configuration = await this.call('discovery', () =>
      client.discovery(
        new URL(issuer ?? ''),
        this.required.clientId ?? 'unused',
        {
          ...(clientSecret !== null && { client_secret: clientSecret }),
          [client.clockTolerance]: CLOCK_TOLERANCE,
        },
        clientSecret === null ? client.None() : secretAuthentication(clientSecret),
        {
          [client.customFetch]: async (url, { body, headers, method, signal }) =>
            this.http.fetch(url, {
              method,
              headers,
              ...(body instanceof URLSearchParams && { body: body.toString() }),
              ...(signal && { signal }),
            }),
          ...(issuer?.startsWith('http:') && { execute: [client.allowInsecureRequests] }),
        },
      ),
    );
    const { jwks_uri: address } = configuration.serverMetadata();
    if (address === undefined) {
      throw new DomainError('unavailable', 'The issuer names no keys (jwks_uri).');
    }
    const keys = createRemoteJWKSet(new URL(address), {
      cooldownDuration: 0,
      cacheMaxAge: Infinity,
      timeoutDuration: TIMEOUT_MS,
      [jwksFetch]: async (url, { signal }) => this.fetchKeys(url, signal),
    });
    // Keys that the issuer has withdrawn go with these.
    await this.call('keys', () => keys.reload());
    this.discovered = { configuration, keys, at: this.clock.now() };
    return this.discovered;
  }

  /** Made-up tokens make it ask no more often than this, also an issuer that is away. */
  private async fetchKeys(url: string, signal: AbortSignal): Promise<Response> {
    const now = this.clock.now();
    const { at, answer: last } = this.lastKeys;
    const isFresh = last !== null && now >= at && now - at < PAUSE_MS;
    const answer = isFresh ? last : this.http.fetch(url, { signal, headers: { accept: 'application/json' } });
    this.lastKeys = isFresh ? this.lastKeys : { at: now, answer };
    return (await answer).clone();
  }

  private async call<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.refusal(what, error);
    }
  }

  /** Says what is wrong without a part of the token. */
  private refusal(what: string, error: unknown): DomainError {
    if (error instanceof DomainError) {
      return error;
    }
    const isOurs = what === 'discovery' || what === 'keys' || what === 'userinfo';
    // Whatever else goes wrong there says nothing of the person: a wrong secret, a limit, an error of the issuer.
    const isAnswer = what !== 'renewal' || isRefusedGrant(error);
    const reason = isOurs || !isAnswer ? null : reasonOf(error);
    if (reason === null) {
      this.logger.warn('failed to ask the issuer', { what, error: errorMessage(error) });
      const words = 'The identity provider cannot be reached; try again in a moment.';
      return new DomainError('unavailable', words, { cause: error });
    }
    this.logger.log('refused what an issuer sent', { what, reason });
    return new DomainError('unauthorized', `Unauthorized: ${reason}.`, { cause: error });
  }
}

function withoutSlash(address: string): string {
  return address.replace(/\/$/, '');
}

/**
 * Sends the secret in the body when the issuer supports that, since not all issuers decode the header as RFC 6749 (2.3.1)
 * asks. An issuer that does not say gets the header (OpenID Connect Discovery 1.0, section 3).
 */
function secretAuthentication(secret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const isInBody = server.token_endpoint_auth_methods_supported?.includes('client_secret_post') === true;
    return (isInBody ? post : basic)(server, ...rest);
  };
}
