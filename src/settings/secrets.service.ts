import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
import { lockUser } from '../auth/lock-user.js';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { DomainError } from '../common/errors/domain-error.js';
import { customSecretBinding } from './encrypted-columns.js';
import { CustomSecret } from './custom-secret.entity.js';
import type { CreateSecretDto, CustomSecretValueDto, UpdateSecretDto } from './secrets.dto.js';

/** A custom secret without its value. */
export type SecretDescription = Pick<CustomSecret, 'name' | 'description'>;

/** All of them in one statement; an absent description ($5 false) keeps the stored one. */
const MERGE = `
  INSERT INTO custom_secrets AS stored (user_id, name, value, description)
  SELECT $1, given.name, given.value, given.description
  FROM unnest($2::text[], $3::text[], $4::text[]) AS given (name, value, description)
  ON CONFLICT (user_id, name) DO UPDATE
  SET value = excluded.value, updated_at = now(),
      description = CASE WHEN excluded.name = ANY ($5::text[]) THEN excluded.description ELSE stored.description END`;

/** Users' custom secrets. Values go in and never come out here; whoever writes several rows locks the user first. */
@Injectable()
export class SecretsService {
  constructor(
    @InjectRepository(CustomSecret) private readonly secrets: Repository<CustomSecret>,
    private readonly cipher: SecretCipher,
  ) {}

  /** Names and descriptions, by name. */
  async list(userId: string): Promise<SecretDescription[]> {
    return this.secrets.find({
      select: { name: true, description: true },
      where: { userId },
      order: { name: 'ASC' },
    });
  }

  /** @throws DomainError conflict when the name is taken */
  async create(userId: string, { name, value, description = null }: CreateSecretDto): Promise<void> {
    await this.secrets.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      await this.refuseTaken(manager, userId, name);
      await manager.insert(CustomSecret, {
        userId,
        name,
        value: this.encrypt(userId, name, value),
        description,
      });
    });
  }

  /**
   * Renames a secret and changes what is given of it.
   *
   * @throws DomainError not_found for an unknown name, conflict when the new one is taken
   */
  async update(
    userId: string,
    name: string,
    { name: newName, value, description }: UpdateSecretDto,
  ): Promise<void> {
    await this.secrets.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      const stored = await manager.findOneBy(CustomSecret, { userId, name });
      if (!stored) {
        throw unknownSecret(name);
      }
      if (newName !== name) {
        await this.refuseTaken(manager, userId, newName);
      }
      // The record is bound to the name, so a new name needs a new record.
      const clear = value ?? this.cipher.decrypt(stored.value, customSecretBinding(userId, name));
      await manager.update(
        CustomSecret,
        { userId, name },
        {
          name: newName,
          value: this.encrypt(userId, newName, clear),
          ...(description !== undefined && { description }),
        },
      );
    });
  }

  /** @throws DomainError not_found for an unknown name */
  async remove(userId: string, name: string): Promise<void> {
    const { affected } = await this.secrets.delete({ userId, name });
    if (affected !== 1) {
      throw unknownSecret(name);
    }
  }

  /** Adds or replaces secrets within the caller's transaction, which has locked the user. */
  async mergeWithin(
    manager: EntityManager,
    userId: string,
    secrets: ReadonlyMap<string, CustomSecretValueDto>,
  ): Promise<void> {
    if (secrets.size === 0) {
      return;
    }
    const entries = [...secrets];
    await manager.query(MERGE, [
      userId,
      entries.map(([name]) => name),
      entries.map(([name, { secret }]) => this.encrypt(userId, name, secret)),
      entries.map(([, { description }]) => description ?? null),
      entries.filter(([, { description }]) => description !== undefined).map(([name]) => name),
    ]);
  }

  private async refuseTaken(manager: EntityManager, userId: string, name: string): Promise<void> {
    if (await manager.existsBy(CustomSecret, { userId, name })) {
      const message = `A secret named ${name} exists already.`;
      throw new DomainError('bad_request', 'conflict', message, { extensions: { message } });
    }
  }

  private encrypt(userId: string, name: string, value: string): string {
    return this.cipher.encrypt(value, customSecretBinding(userId, name));
  }
}

function unknownSecret(name: string): DomainError {
  return new DomainError('not_found', 'not_found', `There is no secret named ${name}.`);
}
