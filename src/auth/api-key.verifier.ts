import { timingSafeEqual } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Clock } from '@slipway/common/clock.js';
import { AccessChanges, type Verified, VerifiedUsers } from './access-changes.js';
import { type ParsedApiKey, parseApiKey } from './api-key-format.js';
import { ApiKeyRepository } from './api-key.repository.js';
import { type AuthUser, callerOf } from './auth.decorators.js';

/** How old `last_used_at` may get before it is written again. */
const LAST_USED_MS = 60_000;

/** Finds the user of a key. */
@Injectable()
export class ApiKeyVerifier {
  private readonly logger = new Logger(ApiKeyVerifier.name);
  private readonly verified: VerifiedUsers<AuthUser>;

  constructor(
    private readonly keys: ApiKeyRepository,
    private readonly clock: Clock,
    changes: AccessChanges,
  ) {
    this.verified = new VerifiedUsers(changes, clock);
  }

  /** The key's user; null for unknown, malformed, revoked and expired keys, and those of disabled users, alike. */
  async verify(key: string): Promise<AuthUser | null> {
    const parsed = parseApiKey(key);
    return (
      parsed &&
      this.verified.find(`${parsed.id}.${parsed.secretHash.toString('base64')}`, (now) =>
        this.read(parsed, now),
      )
    );
  }

  /** Which of the keys are valid now, uncached: for responses that outlast the check, such as event streams. */
  async stillValid(keyIds: readonly string[]): Promise<Set<string>> {
    return new Set(await this.keys.findValid(keyIds, new Date(this.clock.now())));
  }

  private async read({ id, secretHash }: ParsedApiKey, now: number): Promise<Verified<AuthUser> | null> {
    const stored = await this.keys.findWithOwner(id);
    if (!stored || !timingSafeEqual(stored.secret_hash, secretHash)) {
      return null;
    }
    const endsAt = stored.expires_at?.getTime() ?? Infinity;
    if (stored.revoked_at || endsAt <= now || (stored.not_before?.getTime() ?? 0) > now) {
      return null;
    }
    if (now - (stored.last_used_at?.getTime() ?? 0) >= LAST_USED_MS) {
      this.noteUse(id, now);
    }
    return { user: callerOf(stored, id), endsAt };
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
