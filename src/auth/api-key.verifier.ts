import { timingSafeEqual } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BoundedCache } from '../common/bounded-cache.js';
import { Clock } from '../common/clock.js';
import { parseApiKey } from './api-key-format.js';
import { ApiKeyRepository } from './api-key.repository.js';
import type { AuthUser } from './auth.decorators.js';

/** Milliseconds: a revocation must hold within 5 s on every replica. */
const CACHE_MS = 4_000;
const MAX_CACHED_KEYS = 10_000;
/** How old `last_used_at` may get before it is written again. */
const LAST_USED_MS = 60_000;

interface VerifiedKey {
  user: AuthUser;
  expiresAt: number;
  verifiedAt: number;
}

/** Finds the user of a key. Verified keys are cached for a few seconds, as every request needs one. */
@Injectable()
export class ApiKeyVerifier {
  private readonly logger = new Logger(ApiKeyVerifier.name);
  private readonly verified = new BoundedCache<string, VerifiedKey>(MAX_CACHED_KEYS);

  constructor(
    private readonly keys: ApiKeyRepository,
    private readonly clock: Clock,
  ) {}

  /** The key's user; null for unknown, malformed, revoked and expired keys alike. */
  async verify(key: string): Promise<AuthUser | null> {
    const parsed = parseApiKey(key);
    if (!parsed) {
      return null;
    }
    const now = this.clock.now();
    const cacheKey = `${parsed.id}.${parsed.secretHash.toString('base64')}`;
    const cached = this.verified.get(cacheKey);
    if (cached && isFresh(cached, now)) {
      return cached.user;
    }
    const stored = await this.keys.findWithOwner(parsed.id);
    if (!stored || !timingSafeEqual(stored.secret_hash, parsed.secretHash)) {
      return null;
    }
    const expiresAt = stored.expires_at?.getTime() ?? Infinity;
    if (stored.revoked_at || expiresAt <= now) {
      this.verified.delete(cacheKey);
      return null;
    }
    const user = { id: stored.user_id, email: stored.email, isAdmin: stored.is_admin, keyId: parsed.id };
    this.verified.set(cacheKey, { user, expiresAt, verifiedAt: now });
    if (now - (stored.last_used_at?.getTime() ?? 0) >= LAST_USED_MS) {
      this.noteUse(parsed.id, now);
    }
    return user;
  }

  /** Which of the keys are valid now, uncached: for responses that outlast the check, such as event streams. */
  async stillValid(keyIds: readonly string[]): Promise<Set<string>> {
    return new Set(await this.keys.findValid(keyIds, new Date(this.clock.now())));
  }

  /** Forgets verified keys on this replica; the others follow within {@link CACHE_MS}. */
  forget(): void {
    this.verified.clear();
  }

  /** Not awaited: a request never waits for its own bookkeeping. */
  private noteUse(keyId: string, now: number): void {
    this.keys.touch(keyId, new Date(now), new Date(now - LAST_USED_MS)).catch((error: unknown) => {
      this.logger.warn('failed to write the last use of an API key', {
        key_id: keyId,
        error: errorMessage(error),
      });
    });
  }
}

/** A verification in the future shows that the clock was set back, so its age is unknown. */
function isFresh({ verifiedAt, expiresAt }: VerifiedKey, now: number): boolean {
  return now >= verifiedAt && now - verifiedAt < CACHE_MS && now < expiresAt;
}
