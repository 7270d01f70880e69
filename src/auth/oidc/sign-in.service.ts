import { Injectable, Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Clock } from '@slipway/common/clock.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { noteCaller } from '@slipway/api/requests/request-context.js';
import { ServiceAddress } from '../../config/service-address.js';
import { ApiKeyVerifier } from '../api-key.verifier.js';
import { BrowserSessions } from '../sessions/browser-sessions.js';
import { SessionRenewal } from '../sessions/session-renewal.js';
import { OidcIssuer } from './oidc.issuer.js';
import {
  beginSignIn,
  endedSignInCookie,
  type LinkedBy,
  ownPath,
  pendingSignIn,
  signInCookie,
} from './pending-sign-in.js';
import { type Claims, issuedAt } from './person-claims.js';
import { PersonsService, type SignedIn } from './persons.service.js';

export const NOT_BEGUN_HERE =
  'This sign-in was not begun in this browser, or longer than ten minutes ago. Begin again.';
export const KEY_ENDED =
  'The key that was to link this sign-in has ended meanwhile. Begin again with another one.';

/** Signs people in by the issuer: authorization code with PKCE (RFC 7636), bound to the browser that began. */
@Injectable()
export class SignInService {
  private readonly logger = new Logger(SignInService.name);

  constructor(
    private readonly issuer: OidcIssuer,
    private readonly persons: PersonsService,
    private readonly keys: ApiKeyVerifier,
    private readonly browsers: BrowserSessions,
    private readonly renewal: SessionRenewal,
    private readonly address: ServiceAddress,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
  ) {}

  /**
   * @param linkTo the user to link, and the key that says so; none for an ordinary sign-in
   * @returns the issuer's address to go to
   * @throws DomainError not_found without an issuer, unavailable
   */
  async begin(
    request: Request,
    response: Response,
    { returnTo, linkTo }: { returnTo?: string | undefined; linkTo?: LinkedBy },
  ): Promise<string> {
    const publicUrl = this.address.urlFor(request);
    const by = linkTo === undefined ? null : { id: linkTo.id, keyId: linkTo.keyId };
    const pending = beginSignIn(ownPath(returnTo, publicUrl), by, this.clock.now());
    const address = await this.issuer.signInAddress(`${publicUrl}/auth/callback`, pending);
    response.append('Set-Cookie', signInCookie(this.cipher, pending, this.address.isHttps(request)));
    return address;
  }

  /**
   * Ends what {@link begin} began.
   * @returns the path of ours to go on at
   * @throws DomainError malformed_request for a browser that began nothing, unauthorized, or as `PersonsService`
   */
  async finish(request: Request, response: Response): Promise<string> {
    const isHttps = this.address.isHttps(request);
    const now = this.clock.now();
    const pending = pendingSignIn(this.cipher, request.headers, isHttps, now);
    if (pending === null) {
      throw new DomainError('malformed_request', NOT_BEGUN_HERE);
    }
    response.append('Set-Cookie', endedSignInCookie(isHttps));
    const { search } = new URL(request.originalUrl, 'http://localhost');
    const callback = new URL(`${this.address.urlFor(request)}/auth/callback${search}`);
    const { claims, refreshToken } = await this.issuer.exchange(callback, pending);
    const { linkTo } = pending;
    const signedIn = await (linkTo === null ? this.persons.signIn(claims) : this.link(linkTo, claims));
    const { identityId, user } = signedIn;
    const sid = typeof claims['sid'] === 'string' ? claims['sid'] : null;
    await this.browsers.begin(
      request,
      response,
      { ...user, keyId: identityId },
      {
        identityId,
        sid,
        refreshToken,
        renewedAt: refreshToken === null ? null : new Date(now),
        signedInAt: issuedAt(claims),
      },
    );
    return pending.returnTo;
  }

  /** The key may have ended since the beginning. */
  private async link({ id, keyId }: LinkedBy, claims: Claims): Promise<SignedIn> {
    if (!(await this.keys.stillValid([keyId])).has(keyId)) {
      throw new DomainError('unauthorized', KEY_ENDED);
    }
    noteCaller(id, id, keyId);
    return this.persons.link(id, claims);
  }

  /** OpenID Connect Back-Channel Logout 1.0. @throws DomainError unauthorized for a token that is not right */
  async logOut(logoutToken: string): Promise<void> {
    const ended = await this.issuer.verifyLogoutToken(logoutToken);
    this.logger.log('the issuer ended sessions', { sid: ended.sid });
    await this.renewal.logOut(ended);
  }
}
