import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Repository } from 'typeorm';
import { Clock } from '../common/clock.js';
import { DomainError } from '../common/errors/domain-error.js';
import { generateApiKey, parseApiKey } from './api-key-format.js';
import { ApiKey } from './api-key.entity.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import type { AuthUser } from './auth.decorators.js';
import { userIsGone } from './lock-user.js';
import { UsersService } from './users.service.js';

/** A key as it is seen once, at its creation. */
export interface IssuedKey {
  key: string;
  record: ApiKey;
}

/** Life cycle of API keys: issue, list, revoke. */
@Injectable()
export class ApiKeysService {
  constructor(
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
    private readonly users: UsersService,
    private readonly verifier: ApiKeyVerifier,
    private readonly clock: Clock,
  ) {}

  /**
   * Issues a key on behalf of `actor`; only administrators issue keys for somebody else.
   *
   * @throws DomainError unauthorized or not_found when the owner has been removed meanwhile
   */
  async issueAs(actor: AuthUser, name: string, expiresAt: Date | null, userId?: string): Promise<IssuedKey> {
    const owner = await this.ownerFor(actor, userId);
    try {
      return await this.issue(owner, name, expiresAt);
    } catch (error) {
      if (!userIsGone(error)) {
        throw error;
      }
      throw owner === actor.id
        ? new DomainError('unauthorized', 'unauthorized', 'Unauthorized')
        : unknownUser();
    }
  }

  async issue(userId: string, name: string, expiresAt: Date | null): Promise<IssuedKey> {
    const key = generateApiKey();
    const parsed = parseApiKey(key);
    if (!parsed) {
      throw new Error('a generated key must be parseable');
    }
    await this.keys.insert({ id: parsed.id, userId, name, secretHash: parsed.secretHash, expiresAt });
    return { key, record: await this.keys.findOneByOrFail({ id: parsed.id }) };
  }

  /** Keys of `actor`, or of another user for administrators; newest first. */
  async listAs(actor: AuthUser, userId?: string): Promise<ApiKey[]> {
    return this.list(await this.ownerFor(actor, userId));
  }

  async list(userId: string): Promise<ApiKey[]> {
    return this.keys.find({ where: { userId }, order: { createdAt: 'DESC', id: 'ASC' } });
  }

  /** @throws DomainError not_found for unknown keys and, to anyone but an administrator, for other people's */
  async revokeAs(actor: AuthUser, keyId: string): Promise<void> {
    const key = await this.keys.findOneBy({ id: keyId });
    if (!key || (key.userId !== actor.id && !actor.isAdmin)) {
      throw unknownKey();
    }
    await this.revoke(keyId);
  }

  /** Revokes a key; revoking it again changes nothing. */
  async revoke(keyId: string): Promise<void> {
    if (!(await this.keys.existsBy({ id: keyId }))) {
      throw unknownKey();
    }
    await this.keys.update({ id: keyId, revokedAt: IsNull() }, { revokedAt: new Date(this.clock.now()) });
    this.verifier.forget();
  }

  private async ownerFor(actor: AuthUser, userId: string | undefined): Promise<string> {
    if (userId === undefined || userId === actor.id) {
      return actor.id;
    }
    if (!actor.isAdmin) {
      throw new DomainError('forbidden', 'forbidden', 'Only administrators manage the keys of other users.');
    }
    if (!(await this.users.exists(userId))) {
      throw unknownUser();
    }
    return userId;
  }
}

function unknownUser(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no user with this id.');
}

function unknownKey(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no API key with this id.');
}
