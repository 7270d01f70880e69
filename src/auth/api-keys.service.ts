import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import { DomainError, InvalidInputError } from '../common/errors/domain-error.js';
import { generateApiKey, parseApiKey } from './api-key-format.js';
import { type ApiKey, ApiKeyRepository, MAX_KEYS, type StoredAlongside } from './api-key.repository.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import type { AuthUser } from './auth.decorators.js';
import { userIsGone, UserRepository } from './user.repository.js';

/** The key's text is available only now. */
export interface IssuedKey {
  key: string;
  record: ApiKey;
}

const PAST_END = {
  loc: ['body', 'expires_at'],
  msg: 'Expected a time in the future; leave it out for a key that lasts until it is revoked.',
  type: 'value_error',
};

@Injectable()
export class ApiKeysService {
  constructor(
    private readonly keys: ApiKeyRepository,
    private readonly users: UserRepository,
    private readonly verifier: ApiKeyVerifier,
    private readonly clock: Clock,
  ) {}

  /**
   * Issues a key, which outlives none that it was issued with; only administrators may for others.
   * @throws DomainError as `issue` and `alongside`, unauthorized, not_found
   */
  async issueAs(
    actor: AuthUser,
    name: string,
    expiresAt: Date | null,
    { userId, alongside }: { userId?: string | undefined; alongside?: StoredAlongside } = {},
  ): Promise<IssuedKey> {
    const owner = await this.ownerFor(actor, userId);
    const latest = await this.keys.endOf(actor.keyId);
    const end = latest !== null && (expiresAt === null || expiresAt > latest) ? latest : expiresAt;
    try {
      return await this.issue(owner, name, end, alongside);
    } catch (error) {
      if (!userIsGone(error)) {
        throw error;
      }
      throw owner === actor.id ? new DomainError('unauthorized', 'Unauthorized') : unknownUser();
    }
  }

  /**
   * Issues a key without checking permissions.
   * @throws DomainError conflict when the user has too many keys; InvalidInputError for an end in the past
   */
  async issue(
    userId: string,
    name: string,
    expiresAt: Date | null,
    alongside?: StoredAlongside,
  ): Promise<IssuedKey> {
    const key = generateApiKey();
    const parsed = parseApiKey(key);
    if (!parsed) {
      throw new Error('a generated API key has the wrong format');
    }
    const now = new Date(this.clock.now());
    if (expiresAt !== null && expiresAt <= now) {
      throw new InvalidInputError(PAST_END);
    }
    const record = await this.keys.add(parsed, { userId, name, expiresAt }, now, alongside);
    if (record === null) {
      throw new DomainError('conflict', `A user may have ${MAX_KEYS} keys; revoke one first.`);
    }
    return { key, record };
  }

  /** The keys of `actor`, or of another user for administrators; newest first. */
  async listAs(actor: AuthUser, userId?: string): Promise<ApiKey[]> {
    return this.keys.listOf(await this.ownerFor(actor, userId));
  }

  /** Revokes a key, as an administrator also of others; `withWhatItMade` as `revoke`. @throws DomainError not_found */
  async revokeAs(actor: AuthUser, keyId: string, withWhatItMade: boolean): Promise<void> {
    const key = await this.keys.findOneBy({ id: keyId });
    if (!key || (key.userId !== actor.id && !actor.isAdmin)) {
      throw unknownKey();
    }
    await this.revoke(keyId, withWhatItMade);
  }

  /**
   * Revokes any user's key; has no effect on a revoked one.
   * @param withWhatItMade what else was made with it is paused, or revoked, also where it was revoked before
   * @throws DomainError not_found
   */
  async revoke(keyId: string, withWhatItMade = false): Promise<void> {
    if (!(await this.keys.existsBy({ id: keyId }))) {
      throw unknownKey();
    }
    await this.keys.revoke(keyId, new Date(this.clock.now()), withWhatItMade);
    this.verifier.forget();
  }

  private async ownerFor(actor: AuthUser, userId: string | undefined): Promise<string> {
    if (userId === undefined || userId === actor.id) {
      return actor.id;
    }
    if (!actor.isAdmin) {
      throw new DomainError('forbidden', 'Only administrators manage the keys of other users.');
    }
    if (!(await this.users.existsBy({ id: userId }))) {
      throw unknownUser();
    }
    return userId;
  }
}

function unknownUser(): DomainError {
  return new DomainError('not_found', 'There is no user with this id.');
}

function unknownKey(): DomainError {
  return new DomainError('not_found', 'There is no API key with this id.');
}
