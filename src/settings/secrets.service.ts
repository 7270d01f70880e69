import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DomainError } from '../common/errors/domain-error.js';
import { CustomSecretRepository, type SecretDescription } from './custom-secret.repository.js';
import type { CreateSecretDto, CustomSecretValueDto, UpdateSecretDto } from './secrets.dto.js';

/** Users' custom secrets. Values go in here and never come out. */
@Injectable()
export class SecretsService {
  constructor(private readonly secrets: CustomSecretRepository) {}

  /** Names and descriptions, by name. */
  async list(userId: string): Promise<SecretDescription[]> {
    return this.secrets.describe(userId);
  }

  /** @throws DomainError conflict when the name is taken */
  async create(userId: string, { name, value, description = null }: CreateSecretDto): Promise<void> {
    if (!(await this.secrets.add(userId, { name, value, description }))) {
      throw nameTaken(name);
    }
  }

  /**
   * Renames a secret and changes what is given of it.
   *
   * @throws DomainError not_found for an unknown name, conflict when the new one is taken
   */
  async update(userId: string, name: string, change: UpdateSecretDto): Promise<void> {
    switch (await this.secrets.change(userId, name, change)) {
      case 'unknown':
        throw unknownSecret(name);
      case 'taken':
        throw nameTaken(change.name);
      case 'changed':
    }
  }

  /** @throws DomainError not_found for an unknown name */
  async remove(userId: string, name: string): Promise<void> {
    if (!(await this.secrets.removeNamed(userId, name))) {
      throw unknownSecret(name);
    }
  }

  /** Adds or replaces secrets within the caller's transaction, which has locked the user. */
  async mergeWithin(
    manager: EntityManager,
    userId: string,
    secrets: ReadonlyMap<string, CustomSecretValueDto>,
  ): Promise<void> {
    await this.secrets.mergeWithin(
      manager,
      userId,
      [...secrets].map(([name, { secret, description }]) => ({ name, value: secret, description })),
    );
  }
}

function nameTaken(name: string): DomainError {
  const message = `A secret named ${name} exists already.`;
  return new DomainError('bad_request', 'conflict', message, { extensions: { message } });
}

function unknownSecret(name: string): DomainError {
  return new DomainError('not_found', 'not_found', `There is no secret named ${name}.`);
}
