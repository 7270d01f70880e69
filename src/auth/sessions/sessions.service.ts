import { timingSafeEqual } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { noteCaller } from '@slipway/api/requests/request-context.js';
import { AccessChanges, type Verified, VerifiedUsers } from '../access-changes.js';
import { type AuthUser, callerOf } from '../auth.decorators.js';
import { generateSession, type SessionToken } from './session-cookie.js';
import { SessionRenewal } from './session-renewal.js';
import { type SessionOrigin, SessionRepository } from './session.repository.js';

/** How old `last_used_at` may get before it is written again. */
const LAST_USED_MS = 60_000;

export interface SignedInUser extends AuthUser {
  name: string | null;
}

export interface OpenedSession {
  /** The cookie's value. */
  value: string;
  user: SignedInUser;
  csrfToken: string;
}

/** Opens, verifies and ends the sessions of browsers. */
@Injectable()
export class SessionsService {
  private readonly logger = new Logger(SessionsService.name);
  private readonly verified: VerifiedUsers<SignedInUser>;

  constructor(
    private readonly sessions: SessionRepository,
    private readonly clock: Clock,
    private readonly changes: AccessChanges,
    private readonly renewal: SessionRenewal,
  ) {
    this.verified = new VerifiedUsers(changes, clock);
  }

  /** Opens a session for the user of a key, or from another origin, with a new secret. Throws as `SessionRepository.add`. */
  async open(
    { id: userId, keyId }: Pick<AuthUser, 'id' | 'keyId'>,
    origin: SessionOrigin = { apiKeyId: keyId },
  ): Promise<OpenedSession> {
    const { value, ...token } = generateSession();
    noteCaller(userId, userId, keyId);
    const refreshToken = origin.refreshToken ? this.renewal.seal(token.id, origin.refreshToken) : null;
    await this.sessions.add(token, { userId, ...origin, refreshToken }, new Date(this.clock.now()));
    const user = await this.verify(token);
    if (!user) {
      throw new DomainError('unauthorized', 'Unauthorized');
    }
    return { value, user, csrfToken: token.csrfToken };
  }

  /** The user of a session; null for unknown and ended ones alike. */
  async verify(token: SessionToken): Promise<SignedInUser | null> {
    return this.verified.find(`${token.id}.${token.secretHash.toString('base64')}`, (now) =>
      this.read(token, now),
    );
  }

  /** Which of the sessions are valid now, uncached; one that only holds a stream is renewed here. */
  async stillValid(ids: readonly string[]): Promise<string[]> {
    const now = this.clock.now();
    const valid = ids.length === 0 ? [] : await this.sessions.findStillValid(ids, new Date(now));
    valid.forEach(({ id, renewed_at: at }) => this.renewal.renewIfDue(id, at, now));
    return valid.map(({ id }) => id);
  }

  /** Has no effect on a session that has ended. */
  async end(token: SessionToken): Promise<void> {
    const user = await this.verify(token);
    if (user) {
      noteCaller(user.id, user.id, user.keyId);
      await this.sessions.end(token.id, user.id);
    }
    this.changes.tell(user?.id ?? null);
  }

  private async read({ id, secretHash }: SessionToken, now: number): Promise<Verified<SignedInUser> | null> {
    const stored = await this.sessions.findValid(id, new Date(now));
    if (!stored || !timingSafeEqual(stored.secret_hash, secretHash)) {
      return null;
    }
    if (now - stored.last_used_at.getTime() >= LAST_USED_MS) {
      this.noteUse(id, now);
    }
    this.renewal.renewIfDue(id, stored.renewed_at, now);
    return { user: { ...callerOf(stored, id), name: stored.name }, endsAt: stored.ends_at.getTime() };
  }

  /** Not awaited: a request never waits for its own bookkeeping. */
  private noteUse(id: string, now: number): void {
    this.sessions.touch(id, new Date(now), new Date(now - LAST_USED_MS)).catch((error: unknown) => {
      this.logger.warn('failed to write the last use of a session', {
        session_id: id,
        error: errorMessage(error),
      });
    });
  }
}
