import { timingSafeEqual } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BoundedCache } from '../../common/bounded-cache.js';
import { Clock } from '../../common/clock.js';
import { noteCaller } from '../../common/requests/request-context.js';
import type { AuthUser } from '../auth.decorators.js';
import { generateSession, parseSession, type SessionToken } from './session-cookie.js';
import { SessionRepository } from './session.repository.js';

/** Milliseconds: the end of a session must hold within 5 s on every replica. */
const CACHE_MS = 4_000;
const MAX_CACHED = 10_000;
/** How old `last_used_at` may get before it is written again. */
const LAST_USED_MS = 60_000;

export interface SignedInUser extends AuthUser {
  name: string | null;
}

interface VerifiedSession {
  user: SignedInUser;
  endsAt: number;
  verifiedAt: number;
}

export interface OpenedSession {
  /** Of the cookie. */
  value: string;
  user: SignedInUser;
  csrfToken: string;
}

/** Opens, verifies and ends the sessions of browsers. */
@Injectable()
export class SessionsService {
  private readonly logger = new Logger(SessionsService.name);
  private readonly verified = new BoundedCache<string, VerifiedSession>(MAX_CACHED);

  constructor(
    private readonly sessions: SessionRepository,
    private readonly clock: Clock,
  ) {}

  /** For the user of a key, always with a new secret. @throws DomainError unauthorized for a removed user */
  async open({ id: userId, keyId }: AuthUser): Promise<OpenedSession> {
    const value = generateSession();
    const token = parseSession(value);
    if (!token) {
      throw new Error('a generated session has the wrong format');
    }
    noteCaller(userId, userId, keyId);
    await this.sessions.add(token, { userId, apiKeyId: keyId }, new Date(this.clock.now()));
    const user = await this.verify(token);
    if (!user) {
      throw new Error('a session ended as it was opened');
    }
    return { value, user, csrfToken: token.csrfToken };
  }

  /** The user of a session; null for unknown and ended ones alike. */
  async verify({ id, secretHash }: SessionToken): Promise<SignedInUser | null> {
    const now = this.clock.now();
    const cacheKey = `${id}.${secretHash.toString('base64')}`;
    const cached = this.verified.get(cacheKey);
    if (cached && now >= cached.verifiedAt && now - cached.verifiedAt < CACHE_MS && now < cached.endsAt) {
      return cached.user;
    }
    const stored = await this.sessions.findValid(id, new Date(now));
    if (!stored || !timingSafeEqual(stored.secret_hash, secretHash)) {
      this.verified.delete(cacheKey);
      return null;
    }
    const { user_id: userId, email, name, is_admin: isAdmin } = stored;
    const user = { id: userId, email, name, isAdmin, keyId: id };
    this.verified.set(cacheKey, { user, endsAt: stored.ends_at.getTime(), verifiedAt: now });
    if (now - stored.last_used_at.getTime() >= LAST_USED_MS) {
      this.noteUse(id, now);
    }
    return user;
  }

  /** Which of the sessions are valid now, uncached. */
  async stillValid(ids: readonly string[]): Promise<string[]> {
    return ids.length === 0 ? [] : this.sessions.findValidIds(ids, new Date(this.clock.now()));
  }

  /** Has no effect on a session that has ended. */
  async end(token: SessionToken): Promise<void> {
    const user = await this.verify(token);
    if (user) {
      noteCaller(user.id, user.id, user.keyId);
      await this.sessions.end(token.id, user.id);
    }
    this.forget();
  }

  /** Forgets verified sessions on this replica; the others follow within {@link CACHE_MS}. */
  forget(): void {
    this.verified.clear();
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
