import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  PrimaryColumn,
  Repository,
  UpdateDateColumn,
} from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { lockUser, UserKeyedRow } from '../../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '../../common/crypto/secret-cipher.js';
import { DomainError, type ErrorKind, InvalidInputError } from '../../common/errors/domain-error.js';
import { type Page, type PageRequest, parsePageId, toPage } from '../../common/pagination/page.js';

/** A named secret that the agents of a user get; those of all users where the organization owns it. */
@Entity('custom_secrets')
export class CustomSecret extends UserKeyedRow {
  @PrimaryColumn('text') name: string;

  /** Encrypted. */
  @Column('text') value: string;
  @Column('text', { nullable: true }) description: string | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

/** What an encrypted custom secret is bound to: copied to another user or name it does not decrypt. */
export function customSecretBinding(userId: string, name: string): string {
  return `custom_secrets.value:${userId}:${name}`;
}

export const CUSTOM_SECRET_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'custom_secrets',
    column: 'value',
    keyColumns: ['user_id', 'name'],
    binding: ({ user_id = '', name = '' }) => customSecretBinding(user_id, name),
  },
];

export type SecretDescription = Pick<CustomSecret, 'name' | 'description'>;

/** With whose it is. */
export interface FoundSecret extends SecretDescription {
  ownerId: string;
  createdAt: Date;
}

/** A custom secret in clear: never for a log or a response. */
interface ClearSecret extends SecretDescription {
  value: string;
}

/** A secret to store. Without a value or a description the stored one stays; null clears the description. */
interface SecretChange {
  name: string;
  value?: string | null;
  description?: string | null | undefined;
}

type NewSecret = SecretChange & { value: string };

/** All in one statement; only the names in $5 get the given description where a secret is stored already. */
const MERGE = `
  INSERT INTO custom_secrets AS stored (user_id, name, value, description)
  SELECT $1, given.name, given.value, given.description
  FROM unnest($2::text[], $3::text[], $4::text[]) AS given (name, value, description)
  ON CONFLICT (user_id, name) DO UPDATE
  SET value = excluded.value, updated_at = now(),
      description = CASE WHEN excluded.name = ANY ($5::text[]) THEN excluded.description ELSE stored.description END
  RETURNING name, xmax = 0 AS created`;

/** By name, from the first after $3 on; of a name that several of the owners ($1) have, that of the first of these. */
const DESCRIBE_PAGE = `
  SELECT DISTINCT ON (name) name, description, user_id AS "ownerId", created_at AS "createdAt" FROM custom_secrets
  WHERE user_id = ANY ($1::uuid[]) AND name > $3 AND strpos(lower(name), lower($2)) > 0
  ORDER BY name, array_position($1::uuid[], user_id) LIMIT $4`;

/** Limits for the secrets of one user. Tools get all of them as variables, whose size the operating system limits. */
const MAX_SECRETS = 1_000;
const MAX_MIB = 4;

const SIZE = `
  SELECT count(*)::integer AS count, coalesce(sum(octet_length(value)), 0)::float AS bytes
  FROM custom_secrets WHERE user_id = $1`;

/** The `custom_secrets` table: encrypts what goes in and decrypts what comes out. Writers lock the user first. */
@Injectable()
export class CustomSecretRepository extends Repository<CustomSecret> {
  constructor(
    dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {
    super(CustomSecret, dataSource.manager);
  }

  async describe(userId: string): Promise<SecretDescription[]> {
    return this.find({
      select: { name: true, description: true },
      where: { userId },
      order: { name: 'ASC' },
    });
  }

  /** @param ownerIds the first is the one whose secrets win */
  async search(
    ownerIds: readonly string[],
    { name__contains: part = '', page_id: pageId, limit }: PageRequest & { name__contains?: string },
  ): Promise<Page<FoundSecret>> {
    // Every name comes after the empty one.
    const after = parsePageId('secrets', pageId, String) ?? '';
    const rows = await this.query<FoundSecret[]>(DESCRIBE_PAGE, [ownerIds, part, after, limit + 1]);
    return toPage('secrets', rows, limit, ({ name }) => name);
  }

  /**
   * All of a user's secrets in clear, by name.
   * @throws SecretDecryptionError when one is not readable with the configured keys
   */
  async read(userId: string): Promise<ClearSecret[]> {
    const rows = await this.find({ where: { userId }, order: { name: 'ASC' } });
    return rows.map((row) => ({ name: row.name, value: this.decrypt(row), description: row.description }));
  }

  /** One value in clear; null when there is no secret of that name. @throws SecretDecryptionError as {@link read} */
  async readValue(userId: string, name: string): Promise<string | null> {
    const row = await this.findOneBy({ userId, name });
    return row && this.decrypt(row);
  }

  /** @throws DomainError not_found */
  async findDescription(ownerId: string, name: string): Promise<FoundSecret> {
    const row = await this.findOneBy({ userId: ownerId, name });
    if (!row) {
      throw unknownSecret(name);
    }
    const { description, createdAt } = row;
    return { name, description, ownerId, createdAt };
  }

  /** @param kind of the error @throws DomainError conflict when the name is taken */
  async add(userId: string, { name, value, description = null }: NewSecret, kind?: ErrorKind): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      if (await manager.existsBy(CustomSecret, { userId, name })) {
        throw secretNameTaken(name, kind);
      }
      await manager.insert(CustomSecret, {
        userId,
        name,
        value: this.encrypt(userId, name, value),
        description,
      });
      await this.checkSize(manager, userId);
      await this.audit.append(manager, { action: 'secret.create', resourceId: name, ownerId: userId });
    });
  }

  /**
   * Changes what is given of the secret of that name, which may get another name.
   * @throws DomainError not_found for an unknown name, conflict when the new one is taken
   */
  async change(
    userId: string,
    name: string,
    { name: newName = name, value, description }: Partial<SecretChange>,
    kind?: ErrorKind,
  ): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      const row = await manager.findOneBy(CustomSecret, { userId, name });
      if (!row) {
        throw unknownSecret(name);
      }
      if (newName !== name && (await manager.existsBy(CustomSecret, { userId, name: newName }))) {
        throw secretNameTaken(newName, kind);
      }
      await manager.update(
        CustomSecret,
        { userId, name },
        {
          name: newName,
          // A record is bound to its name, so a new name needs a new record.
          value: this.encrypt(userId, newName, value ?? this.decrypt(row)),
          ...(description !== undefined && { description }),
        },
      );
      await this.checkSize(manager, userId);
      await this.audit.append(manager, {
        action: 'secret.update',
        resourceId: name,
        ownerId: userId,
        details: {
          members: [
            ...(value === undefined || value === null ? [] : ['value']),
            ...(description === undefined ? [] : ['description']),
          ],
          ...(newName !== name && { new_name: newName }),
        },
      });
    });
  }

  /** @throws DomainError not_found for an unknown name */
  async removeNamed(userId: string, name: string): Promise<void> {
    await this.manager.transaction(async (manager) => {
      const { affected } = await manager.delete(CustomSecret, { userId, name });
      if (affected !== 1) {
        throw unknownSecret(name);
      }
      await this.audit.append(manager, { action: 'secret.delete', resourceId: name, ownerId: userId });
    });
  }

  /** Stores a secret, or replaces the value of the one of that name; without a description the stored one stays. */
  async store(userId: string, { name, value, description }: NewSecret): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      await this.mergeWithin(manager, userId, [{ name, value, description: description ?? undefined }]);
    });
  }

  /** Adds or replaces secrets within the caller's transaction, which has locked the user. */
  async mergeWithin(manager: EntityManager, userId: string, secrets: readonly NewSecret[]): Promise<void> {
    if (secrets.length === 0) {
      return;
    }
    const stored = await manager.query<{ name: string; created: boolean }[]>(MERGE, [
      userId,
      secrets.map(({ name }) => name),
      secrets.map(({ name, value }) => this.encrypt(userId, name, value)),
      secrets.map(({ description }) => description ?? null),
      secrets.filter(({ description }) => description !== undefined).map(({ name }) => name),
    ]);
    await this.checkSize(manager, userId);
    await this.audit.append(
      manager,
      ...stored.map(({ name, created }) => ({
        action: created ? ('secret.create' as const) : ('secret.update' as const),
        resourceId: name,
        ownerId: userId,
        ...(!created && { details: { members: ['value'] } }),
      })),
    );
  }

  /** @throws InvalidInputError, which undoes the transaction, when the user has more than one may have */
  private async checkSize(manager: EntityManager, userId: string): Promise<void> {
    const [size] = await manager.query<{ count: number; bytes: number }[]>(SIZE, [userId]);
    if (size && (size.count > MAX_SECRETS || size.bytes > MAX_MIB * 2 ** 20)) {
      throw new InvalidInputError({
        loc: ['body'],
        msg: `Expected at most ${MAX_SECRETS} custom secrets with ${MAX_MIB} MiB in all; remove some first.`,
        type: 'value_error',
      });
    }
  }

  private encrypt(userId: string, name: string, value: string): string {
    return this.cipher.encrypt(value, customSecretBinding(userId, name));
  }

  private decrypt({ userId, name, value }: CustomSecret): string {
    return this.cipher.decrypt(value, customSecretBinding(userId, name));
  }
}

/** @param kind what clients of the route expect */
export function secretNameTaken(name: string, kind: ErrorKind = 'bad_request'): DomainError {
  const message = `A secret named ${name} exists already.`;
  return new DomainError('conflict', message, { kind, extensions: { message } });
}

export function unknownSecret(name: string): DomainError {
  return new DomainError('not_found', `There is no secret named ${name}.`);
}
