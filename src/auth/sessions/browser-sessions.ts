import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';
import { ServiceAddress } from '../../config/service-address.js';
import type { AuthUser } from '../auth.decorators.js';
import { NO_CSRF_TOKEN } from '../request-authenticator.js';
import { isCsrfToken, presentedSession, sessionSetCookie } from './session-cookie.js';
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

  async find({ headers }: Request): Promise<BrowserSession | null> {
    const session = presentedSession(headers);
    const user = session === null ? null : await this.sessions.verify(session);
    return session === null || user === null ? null : { user, csrfToken: session.csrfToken };
  }

  /** Never continues a session that the browser has brought along: others may know its secret. */
  async begin(request: Request, response: Response, user: AuthUser): Promise<BrowserSession> {
    const opened = await this.sessions.open(user);
    const earlier = presentedSession(request.headers);
    if (earlier !== null) {
      await this.sessions.end(earlier);
    }
    response.setHeader('Set-Cookie', sessionSetCookie(opened.value, this.isSecure(request)));
    return opened;
  }

  /** @throws DomainError forbidden without the session's token */
  async end(request: Request, response: Response): Promise<void> {
    const session = presentedSession(request.headers);
    if (session !== null && (await this.sessions.verify(session)) !== null) {
      if (!isCsrfToken(request.headers['x-csrf-token'], session)) {
        throw new DomainError('forbidden', 'forbidden', NO_CSRF_TOKEN);
      }
      await this.sessions.end(session);
    }
    response.setHeader('Set-Cookie', sessionSetCookie(null, this.isSecure(request)));
  }

  private isSecure({ headers }: Request): boolean {
    return this.address.publicUrl.startsWith('https:') || headers['x-forwarded-proto'] === 'https';
  }
}
