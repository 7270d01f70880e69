import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { DomainError, found } from '../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { requireScope, type Scope } from '../common/scopes.js';
import { AccessChanges } from './access-changes.js';
import { generateApiKey, parsedApiKey } from './api-key-format.js';
import {
  type ApiKey,
  ApiKeyRepository,
  type Besides,
  MAX_KEYS,
  type NewApiKey,
} from './api-key.repository.js';
import type { AuthUser } from './auth.decorators.js';
import { covers, outsideRepositories } from './key-repositories.js';
import { User, userIsGone, UserRepository } from './user.repository.js';

/** The key's text is available only now. */
export interface IssuedKey {
  key: string;
  record: ApiKey;
}

/** What one asks for; without scopes all that the asking key has but `admin`, without repositories all of that. */
export type WantedKey = Partial<Omit<NewApiKey, 'scopes' | 'repositories'>> & {
  name: string;
  scopes?: readonly Scope[] | undefined;
  repositories?: readonly string[] | undefined;
};

const PAST_END = {
  loc: ['body', 'expires_at'],
  msg: 'Expected a time in the future; leave it out for a key that lasts until it is revoked.',
  type: 'value_error',
};

const NEVER_VALID = { ...PAST_END, msg: 'Expected a time after not_before.' };

const NO_REPOSITORY = {
  loc: ['body', 'repositories'],
  msg: 'Expected one repository or more.',
  type: 'too_short',
};

const NO_SCOPE = { loc: ['body', 'scopes'], msg: 'Expected one scope or more.', type: 'too_short' };

@Injectable()
export class ApiKeysService {
  constructor(
    private readonly keys: ApiKeyRepository,
    private readonly users: UserRepository,
    private readonly changes: AccessChanges,
    private readonly clock: Clock,
  ) {}

  /**
   * Issues a key, which outlives none that it was issued with, and may no more; only administrators may for others.
   * @throws DomainError as `issue` and `after`, unauthorized, not_found, insufficient_scope, outside_repositories
   */
  async issueAs(
    actor: AuthUser,
    { scopes = withoutAdmin(actor.scopes), repositories, expiresAt = null, userId, ...wanted }: WantedKey,
    after?: Besides['after'],
  ): Promise<IssuedKey> {
    scopes.forEach((scope) => requireScope(actor, scope));
    if (scopes.length === 0) {
      throw new InvalidInputError(NO_SCOPE);
    }
    const limits = { scopes: [...new Set(scopes)], repositories: repositoriesFor(actor, repositories) };
    const owner = await this.ownerFor(actor, userId);
    const latest = await this.keys.endOf(actor.keyId);
    const end = latest !== null && (expiresAt === null || expiresAt > latest) ? latest : expiresAt;
    try {
      const before = this.requiringRank(actor, owner);
      return await this.issue({ ...wanted, ...limits, userId: owner, expiresAt: end }, { before, after });
    } catch (error) {
      if (!userIsGone(error)) {
        throw error;
      }
      throw owner === actor.id ? new DomainError('unauthorized', 'Unauthorized') : unknownUser();
    }
  }

  /**
   * Issues a key without checking permissions; one without scopes may do all that its user may.
   * @throws DomainError conflict when the user has too many keys; InvalidInputError for an end in the past
   */
  async issue(wanted: NewApiKey, besides?: Besides): Promise<IssuedKey> {
    const key = generateApiKey();
    const now = new Date(this.clock.now());
    const { expiresAt, notBefore = null } = wanted;
    if (expiresAt !== null && expiresAt <= now) {
      throw new InvalidInputError(PAST_END);
    }
    if (expiresAt !== null && notBefore !== null && expiresAt <= notBefore) {
      throw new InvalidInputError(NEVER_VALID);
    }
    const record = await this.keys.add(parsedApiKey(key), wanted, now, besides);
    if (record === null) {
      throw new DomainError('conflict', `A user may have ${MAX_KEYS} keys; revoke one first.`);
    }
    return { key, record };
  }

  /** The keys of `actor`, or of another user for administrators; newest first. */
  async listAs(actor: AuthUser, userId?: string): Promise<ApiKey[]> {
    return this.keys.listOf(await this.ownerFor(actor, userId));
  }

  /** Revokes a key, as an administrator also of others; `withWhatItMade` as `revoke`. @throws DomainError not_found, forbidden */
  async revokeAs(actor: AuthUser, keyId: string, withWhatItMade: boolean): Promise<void> {
    const key = await this.keys.findOneBy({ id: keyId });
    if (!key || (key.userId !== actor.id && !actor.isAdmin)) {
      throw unknownKey();
    }
    await this.revoke(keyId, withWhatItMade, { before: this.requiringRank(actor, key.userId) });
  }

  /**
   * Revokes any user's key; has no effect on a revoked one.
   * @param withWhatItMade what else was made with it is paused, removed or revoked, also where it was revoked before
   * @throws DomainError not_found
   */
  async revoke(keyId: string, withWhatItMade = false, besides?: Besides): Promise<void> {
    if (!(await this.keys.existsBy({ id: keyId }))) {
      throw unknownKey();
    }
    await this.keys.revoke(keyId, new Date(this.clock.now()), withWhatItMade, besides);
    this.changes.tell(null);
  }

  /** A key of an owner is what that owner may, and without it the owner may nothing. Throws as `UserRepository.requireRank`. */
  private requiringRank({ id: by }: AuthUser, userId: string) {
    return async (manager: EntityManager): Promise<void> => {
      if (userId !== by) {
        await this.users.lockAdministrators(manager, by);
        const user = found(await manager.findOneBy(User, { id: userId }), 'user');
        await this.users.requireRank(manager, by, user);
      }
    };
  }

  private async ownerFor(actor: AuthUser, userId: string | undefined): Promise<string> {
    if (userId === undefined || userId === actor.id) {
      return actor.id;
    }
    requireScope(actor, 'admin');
    if (!actor.isAdmin) {
      throw new DomainError('forbidden', 'Only administrators manage the keys of other users.');
    }
    if ((await this.users.findPresent(userId)) === null) {
      throw unknownUser();
    }
    return userId;
  }
}

/** @throws InvalidInputError for none, DomainError outside_repositories for more than those of the asking key */
function repositoriesFor(
  { repositories: own }: Pick<AuthUser, 'repositories'>,
  wanted: readonly string[] | undefined,
): string[] | null {
  if (wanted?.length === 0) {
    throw new InvalidInputError(NO_REPOSITORY);
  }
  const lower = wanted?.map((each) => each.toLowerCase());
  if (own !== null && lower?.every((each) => covers(own, each)) === false) {
    throw outsideRepositories(own, 'It makes keys for these only, and for what is below them.');
  }
  const given = lower ?? own;
  return given && [...new Set(given)];
}

/** Who wants a key for administrators says so. */
function withoutAdmin(scopes: readonly Scope[]): Scope[] {
  return scopes.filter((scope) => scope !== 'admin');
}

function unknownUser(): DomainError {
  return new DomainError('not_found', 'There is no user with this id.');
}

function unknownKey(): DomainError {
  return new DomainError('not_found', 'There is no API key with this id.');
}
