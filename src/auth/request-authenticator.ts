import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { isDatabaseAway } from '@slipway/database/database-failure.js';
import { DomainError } from '../common/errors/domain-error.js';
import { ServiceAddress } from '../config/service-address.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import type { AuthUser } from './auth.decorators.js';
import { presentedBesideSandboxKey, presentedKey } from './api-key-format.js';
import { BearerTokenVerifier } from './oidc/bearer-token.verifier.js';
import { isCsrfToken, isSessionId, presentedSession, type SessionToken } from './sessions/session-cookie.js';
import { SessionsService, type SignedInUser } from './sessions/sessions.service.js';

const SAFE_METHODS: readonly unknown[] = ['GET', 'HEAD', 'OPTIONS'];
/** `Sec-Fetch-Site`, which also images and links of other pages send, without an origin. */
const OTHER_PAGES: readonly unknown[] = ['same-site', 'cross-site'];

export const FOREIGN_PAGE = 'Only pages of the service itself, at PUBLIC_URL, may use a session.';
export const NO_CSRF_TOKEN =
  'Changes by a session need its csrf_token, which GET /auth/session answers, in the header X-CSRF-Token.';

/** Finds the user of a request: by its key, or without one by the session of its browser. */
@Injectable()
export class RequestAuthenticator {
  constructor(
    private readonly keys: ApiKeyVerifier,
    private readonly tokens: BearerTokenVerifier,
    private readonly sessions: SessionsService,
    private readonly address: ServiceAddress,
  ) {}

  /** A key that came with the request decides alone, since no page of another origin can add one. */
  async authenticate(request: Request, key: string | null): Promise<AuthUser | null> {
    return key === null ? this.bySession(request) : this.byKey(key);
  }

  /** The key of the user, or a token of the issuer. @param besideSandboxKey as {@link presentedBesideSandboxKey} */
  presentedKey(headers: IncomingHttpHeaders, besideSandboxKey = false): string | null {
    const find = besideSandboxKey ? presentedBesideSandboxKey : presentedKey;
    return find(headers, (token) => this.isOurToken(token));
  }

  isOurToken(token: string): boolean {
    return this.tokens.isOwn(token);
  }

  /** Returns null for a refused token too, as the caller only decides whose share a request counts against. */
  async userOf(key: string): Promise<AuthUser | null> {
    try {
      return await this.byKey(key);
    } catch (error) {
      if (error instanceof DomainError) {
        return null;
      }
      throw error;
    }
  }

  private async byKey(key: string): Promise<AuthUser | null> {
    return this.tokens.isOwn(key) ? this.tokens.verify(key) : this.keys.verify(key);
  }

  /** A key that cannot be checked now counts as missing, as does a session that a page of another origin uses. */
  async isAdministrator(request: Request): Promise<boolean> {
    try {
      const key = this.presentedKey(request.headers);
      return (await (key === null ? this.signedInUser(request) : this.userOf(key)))?.isAdmin === true;
    } catch (error) {
      if (isDatabaseAway(error)) {
        return false;
      }
      throw error;
    }
  }

  async signedInUser(request: Request): Promise<SignedInUser | null> {
    const session = this.isOwnPage(request.headers) ? this.presentedSession(request) : null;
    return session === null ? null : this.sessions.verify(session);
  }

  /** Which keys and sessions are valid now, uncached: for responses that outlast the check, such as event streams. */
  async stillValid(ids: readonly string[]): Promise<Set<string>> {
    const isToken = (id: string): boolean => this.tokens.isKeyId(id);
    const [keys, tokens, sessions] = await Promise.all([
      this.keys.stillValid(ids.filter((id) => !isSessionId(id) && !isToken(id))),
      this.tokens.stillValid(ids.filter(isToken)),
      this.sessions.stillValid(ids.filter(isSessionId)),
    ]);
    return new Set([...keys, ...tokens, ...sessions]);
  }

  /**
   * Browsers take all ports of a host for one site, so `SameSite` does not keep pages of sandboxes out; programs
   * send no origin.
   * @throws DomainError forbidden for a page of another origin
   */
  requireOwnOrigin({ headers }: IncomingMessage): void {
    if (!this.isOwnPage(headers)) {
      throw new DomainError('forbidden', FOREIGN_PAGE);
    }
  }

  private isOwnPage({ origin, host, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
    return (origin === undefined || this.address.isOwn(origin, host)) && !OTHER_PAGES.includes(site);
  }

  private presentedSession(request: Request): SessionToken | null {
    return presentedSession(request.headers, this.address.isHttps(request));
  }

  /** @throws DomainError forbidden for a page of another origin, or a change without the token */
  private async bySession(request: Request): Promise<AuthUser | null> {
    const session = this.presentedSession(request);
    const user = session === null ? null : await this.sessions.verify(session);
    if (session === null || user === null) {
      return null;
    }
    this.requireOwnOrigin(request);
    const isChange = !SAFE_METHODS.includes(request.method);
    if (isChange && !isCsrfToken(request.headers['x-csrf-token'], session)) {
      throw new DomainError('forbidden', NO_CSRF_TOKEN);
    }
    return user;
  }
}
