import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DomainError } from '../../common/errors/domain-error.js';
import { type Page, type PageRequest, parsePageId, toPage } from '../../common/pagination/page.js';
import { CustomSecretRepository, type SecretDescription } from './custom-secret.repository.js';
import type { CreateSecretDto, CustomSecretValueDto, UpdateSecretDto } from './secrets.dto.js';

interface SecretSearch extends PageRequest {
  /** Part of the name; upper and lower case do not matter. */
  name__contains?: string;
}

/** Users' custom secrets. Values go in here and never come out. */
@Injectable()
export class SecretsService {
  constructor(private readonly secrets: CustomSecretRepository) {}

  async list(userId: string): Promise<SecretDescription[]> {
    return this.secrets.describe(userId);
  }

  async search(
    userId: string,
    { name__contains: part = '', page_id: pageId, limit }: SecretSearch,
  ): Promise<Page<SecretDescription>> {
    const rows = await this.secrets.describePage(userId, {
      part,
      after: parsePageId('secrets', pageId, String),
      limit: limit + 1,
    });
    return toPage('secrets', rows, limit, ({ name }) => name);
  }

  /** Stores a secret, or replaces the value of the one of that name; without a description the stored one stays. */
  async store(userId: string, { name, value, description }: CreateSecretDto): Promise<void> {
    await this.secrets.storeAll(userId, [{ name, value, description: description ?? undefined }]);
  }

  /** @throws DomainError conflict when the name is taken */
  async create(userId: string, { name, value, description = null }: CreateSecretDto): Promise<void> {
    if (!(await this.secrets.add(userId, { name, value, description }))) {
      throw secretNameTaken(name);
    }
  }

  /**
   * Renames a secret and changes what is given of it.
   * @throws DomainError not_found for an unknown name, conflict when the new one is taken
   */
  async update(userId: string, name: string, change: UpdateSecretDto): Promise<void> {
    switch (await this.secrets.change(userId, name, change)) {
      case 'unknown':
        throw unknownSecret(name);
      case 'taken':
        throw secretNameTaken(change.name);
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

export function secretNameTaken(name: string): DomainError {
  const message = `A secret named ${name} exists already.`;
  return new DomainError('bad_request', 'conflict', message, { extensions: { message } });
}

export function unknownSecret(name: string): DomainError {
  return new DomainError('not_found', 'not_found', `There is no secret named ${name}.`);
}
