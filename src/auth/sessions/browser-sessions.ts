import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';
import { ServiceAddress } from '../../config/service-address.js';
import type { AuthUser } from '../auth.decorators.js';
import { NO_CSRF_TOKEN } from '../request-authenticator.js';
import { isCsrfToken, presentedSession, sessionSetCookie } from './session-cookie.js';
import type { SessionOrigin } from './session.repository.js';
import { type SignedInUser, SessionsService } from './sessions.service.js';

export interface BrowserSession {
  user: SignedInUser;
  csrfToken: string;
}

/** Sessions as browsers carry them: in a cookie that no script can read. */
@Injectable()
export class BrowserSessions {
  constructor(
    private readonly sessions: SessionsService,
    private readonly address: ServiceAddress,
  ) {}

  async find(request: Request): Promise<BrowserSession | null> {
    const session = presentedSession(request.headers, this.address.isHttps(request));
    const user = session === null ? null : await this.sessions.verify(session);
    return session === null || user === null ? null : { user, csrfToken: session.csrfToken };
  }

  /** Never continues a session that the browser has brought along: others may know its secret. */
  async begin(
    request: Request,
    response: Response,
    user: Pick<AuthUser, 'id' | 'keyId'>,
    origin?: SessionOrigin,
  ): Promise<BrowserSession> {
    const opened = await this.sessions.open(user, origin);
    const isHttps = this.address.isHttps(request);
    const earlier = presentedSession(request.headers, isHttps);
    if (earlier !== null) {
      await this.sessions.end(earlier);
    }
    response.append('Set-Cookie', sessionSetCookie(opened.value, isHttps));
    return opened;
  }

  /** @throws DomainError forbidden without the session's token */
  async end(request: Request, response: Response): Promise<void> {
    const isHttps = this.address.isHttps(request);
    const session = presentedSession(request.headers, isHttps);
    if (session !== null && (await this.sessions.verify(session)) !== null) {
      if (!isCsrfToken(request.headers['x-csrf-token'], session)) {
        throw new DomainError('forbidden', NO_CSRF_TOKEN);
      }
      await this.sessions.end(session);
    }
    response.setHeader('Set-Cookie', sessionSetCookie(null, isHttps));
  }
}
