import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  In,
  Index,
  IsNull,
  Not,
  PrimaryColumn,
  QueryFailedError,
  Repository,
  UpdateDateColumn,
} from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { lockUser, UserKeyedRow } from '../../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '@slipway/common/secret-cipher.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { type ErrorKind, InvalidInputError, requireNone } from '@slipway/api/errors/problem-error.js';
import { type Page, type PageRequest, parsePageId, toPage } from '@slipway/api/pagination/page.js';
import {
  changedInjection,
  type InjectionChange,
  injectionProblems,
  placeholderTaken,
  type SecretInjection,
  type SecretPhase,
} from '@slipway/egress-rules/secret-injection.js';

/** Of the placeholders that users chose, which are of one secret each. */
const PLACEHOLDER_KEY = 'custom_secrets_placeholder_key';

/** A named secret that the agents of a user get; those of all users where the organization owns it. */
@Entity('custom_secrets')
@Index(PLACEHOLDER_KEY, { synchronize: false })
export class CustomSecret extends UserKeyedRow {
  @PrimaryColumn('text') name: string;

  /** Encrypted. */
  @Column('text') value: string;
  @Column('text', { nullable: true }) description: string | null;

  /** Null: its value is in sandboxes. */
  @Column('jsonb', { nullable: true }) injection: SecretInjection | null;
  /** Null: agents get it. */
  @Column('text', { nullable: true }) phase: SecretPhase | null;
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

export type SecretDescription = Pick<CustomSecret, 'name' | 'description' | 'injection' | 'phase'>;

/** With whose it is. */
export interface FoundSecret extends SecretDescription {
  ownerId: string;
  createdAt: Date;
}

/** A custom secret in clear: never for a log or a response. */
export interface ClearSecret extends SecretDescription {
  value: string;
}

/** A secret to store. Without a value or a description the stored one stays; null clears the description. */
interface SecretChange extends InjectionChange {
  name: string;
  value?: string | null;
  description?: string | null | undefined;
}

type NewSecret = SecretChange & { value: string };

/** All in one statement; only the names in $5 get the given description where a secret is stored already. */
const MERGE = `
  INSERT INTO custom_secrets AS stored (user_id, name, value, description, injection, phase)
  SELECT $1, given.name, given.value, given.description, given.injection, given.phase
  FROM unnest($2::text[], $3::text[], $4::text[], $6::jsonb[], $7::text[])
    AS given (name, value, description, injection, phase)
  ON CONFLICT (user_id, name) DO UPDATE
  SET value = excluded.value, injection = excluded.injection, updated_at = now(),
      description = CASE WHEN excluded.name = ANY ($5::text[]) THEN excluded.description ELSE stored.description END,
      phase = CASE WHEN excluded.name = ANY ($8::text[]) THEN excluded.phase ELSE stored.phase END
  RETURNING name, xmax = 0 AS created`;

/** By name, from the first after $3 on; of a name that several of the owners ($1) have, that of the first of these. */
const DESCRIBE_PAGE = `
  SELECT DISTINCT ON (name) name, description, injection, phase, user_id AS "ownerId", created_at AS "createdAt"
  FROM custom_secrets
  WHERE user_id = ANY ($1::uuid[]) AND name > $3 AND strpos(lower(name), lower($2)) > 0
  ORDER BY name, array_position($1::uuid[], user_id) LIMIT $4`;

/** A secret of the user's hides one of its name below, also where it has no injection itself. */
const IS_OWN_OR_NOT_NAMED = `(secret.user_id = :userId OR NOT EXISTS (
  SELECT FROM custom_secrets own WHERE own.user_id = :userId AND own.name = secret.name))`;

/** Limits for the secrets of one user. Tools get all of them as variables, whose size the operating system limits. */
const MAX_SECRETS = 1_000;
const MAX_MIB = 4;
/** The proxy is told all of them, again and again. */
const MAX_OUTSIDE = 100;

const SIZE = `
  SELECT count(*)::integer AS count, count(injection)::integer AS outside,
    coalesce(sum(octet_length(value) + coalesce(octet_length(injection::text), 0)), 0)::float AS bytes
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
      select: { name: true, description: true, injection: true, phase: true },
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
   * Returns all secrets in clear, by name, of an owner among those that are given. It throws SecretDecryptionError when one is
   * not readable with the configured keys.
   */
  async readEach(ownerIds: readonly string[]): Promise<(ownerId: string) => ClearSecret[]> {
    const rows = await this.find({ where: { userId: In(ownerIds) }, order: { name: 'ASC' } });
    return (ownerId) => rows.filter(({ userId }) => userId === ownerId).map((row) => this.inClear(row));
  }

  /**
   * Those whose value is put in outside of sandboxes: the user's, and of those below them each that the user has none of its name of.
   * @throws SecretDecryptionError as {@link readEach}
   */
  async readOutside(userId: string, below: string): Promise<ClearSecret[]> {
    const rows = await this.createQueryBuilder('secret')
      .where({ userId: In([userId, below]), injection: Not(IsNull()) })
      .andWhere(IS_OWN_OR_NOT_NAMED, { userId })
      .getMany();
    return rows.map((row) => this.inClear(row));
  }

  /** One in clear; null when there is none of that name. @throws SecretDecryptionError as {@link readEach} */
  async readOne(userId: string, name: string): Promise<ClearSecret | null> {
    const row = await this.findOneBy({ userId, name });
    return row && this.inClear(row);
  }

  /** @throws DomainError not_found */
  async findDescription(ownerId: string, name: string): Promise<FoundSecret> {
    const row = await this.findOneBy({ userId: ownerId, name });
    if (!row) {
      throw unknownSecret(name);
    }
    const { description, injection, phase, createdAt } = row;
    return { name, description, injection, phase, ownerId, createdAt };
  }

  /**
   * @param kind of the error for a taken name
   * @throws DomainError conflict when the name is taken; InvalidInputError when its rule does not fit
   */
  async add(
    userId: string,
    { name, value, description = null, ...change }: NewSecret,
    kind?: ErrorKind,
  ): Promise<void> {
    const injection = checkedInjection({ name, value }, null, change);
    await this.write(async (manager) => {
      await lockUser(manager, userId);
      if (await manager.existsBy(CustomSecret, { userId, name })) {
        throw secretNameTaken(name, kind);
      }
      await manager.insert(CustomSecret, {
        userId,
        name,
        value: this.encrypt(userId, name, value),
        description,
        injection,
        phase: change.phase ?? null,
      });
      await this.checkSize(manager, userId);
      await this.audit.append(manager, { action: 'secret.create', resourceId: name, ownerId: userId });
    });
  }

  /**
   * Changes what is given of the secret of that name, which may get another name.
   * @throws DomainError not_found for an unknown name, conflict when the new one is taken; InvalidInputError when the rule
   * does not fit
   */
  async change(
    userId: string,
    name: string,
    { name: newName = name, value: newValue, description, ...change }: Partial<SecretChange>,
    kind?: ErrorKind,
  ): Promise<void> {
    await this.write(async (manager) => {
      await lockUser(manager, userId);
      const row = await manager.findOneBy(CustomSecret, { userId, name });
      if (!row) {
        throw unknownSecret(name);
      }
      if (newName !== name && (await manager.existsBy(CustomSecret, { userId, name: newName }))) {
        throw secretNameTaken(newName, kind);
      }
      const value = newValue ?? this.decrypt(row);
      const injection = checkedInjection({ name: newName, value }, row.injection, change);
      await manager.update(
        CustomSecret,
        { userId, name },
        {
          name: newName,
          // A record is bound to its name, so a new name needs a new record.
          value: this.encrypt(userId, newName, value),
          ...(description !== undefined && { description }),
          ...(change.phase !== undefined && { phase: change.phase }),
          injection,
        },
      );
      await this.checkSize(manager, userId);
      await this.audit.append(manager, {
        action: 'secret.update',
        resourceId: name,
        ownerId: userId,
        details: {
          members: [
            ...(newValue === undefined || newValue === null ? [] : ['value']),
            ...(description === undefined ? [] : ['description']),
            ...Object.entries(change).flatMap(([member, given]) => (given === undefined ? [] : [member])),
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

  /**
   * Stores a secret, or replaces the value of the one of that name; without a description or a rule the stored one stays.
   * @throws InvalidInputError as {@link add}
   */
  async store(userId: string, { description, ...secret }: NewSecret): Promise<void> {
    await this.write(async (manager) => {
      await lockUser(manager, userId);
      await this.mergeWithin(manager, userId, [{ ...secret, description: description ?? undefined }]);
    });
  }

  /** Adds or replaces secrets within the caller's transaction, which has locked the user. @throws InvalidInputError as {@link add} */
  async mergeWithin(manager: EntityManager, userId: string, secrets: readonly NewSecret[]): Promise<void> {
    if (secrets.length === 0) {
      return;
    }
    const known = await manager.find(CustomSecret, {
      select: { name: true, injection: true },
      where: { userId, name: In(secrets.map(({ name }) => name)), injection: Not(IsNull()) },
    });
    const rules = secrets.map(({ name, value, ...change }) => {
      const stored = known.find((row) => row.name === name)?.injection ?? null;
      const injection = checkedInjection({ name, value }, stored, change);
      return injection && JSON.stringify(injection);
    });
    const stored = await manager.query<{ name: string; created: boolean }[]>(MERGE, [
      userId,
      secrets.map(({ name }) => name),
      secrets.map(({ name, value }) => this.encrypt(userId, name, value)),
      secrets.map(({ description }) => description ?? null),
      secrets.filter(({ description }) => description !== undefined).map(({ name }) => name),
      rules,
      secrets.map(({ phase }) => phase ?? null),
      secrets.filter(({ phase }) => phase !== undefined).map(({ name }) => name),
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
    const [size] = await manager.query<Record<'count' | 'outside' | 'bytes', number>[]>(SIZE, [userId]);
    if (size && size.outside > MAX_OUTSIDE) {
      throw new InvalidInputError({
        loc: ['body', 'hosts'],
        msg: `Expected at most ${MAX_OUTSIDE} custom secrets with hosts; remove some first.`,
        type: 'value_error',
      });
    }
    if (size && (size.count > MAX_SECRETS || size.bytes > MAX_MIB * 2 ** 20)) {
      throw new InvalidInputError({
        loc: ['body'],
        msg: `Expected at most ${MAX_SECRETS} custom secrets with ${MAX_MIB} MiB in all; remove some first.`,
        type: 'value_error',
      });
    }
  }

  /** A transaction. @throws InvalidInputError when another secret has the placeholder */
  private async write(work: (manager: EntityManager) => Promise<void>): Promise<void> {
    try {
      await this.manager.transaction(work);
    } catch (error) {
      const { constraint }: { constraint?: unknown } =
        error instanceof QueryFailedError ? error.driverError : {};
      throw constraint === PLACEHOLDER_KEY ? new InvalidInputError(placeholderTaken()) : error;
    }
  }

  private inClear(row: CustomSecret): ClearSecret {
    const { name, description, injection, phase } = row;
    return { name, value: this.decrypt(row), description, injection, phase };
  }

  private encrypt(userId: string, name: string, value: string): string {
    return this.cipher.encrypt(value, customSecretBinding(userId, name));
  }

  private decrypt({ userId, name, value }: CustomSecret): string {
    return this.cipher.decrypt(value, customSecretBinding(userId, name));
  }
}

/** @throws InvalidInputError when the secret cannot be put in by the rule that it would have */
function checkedInjection(
  secret: { name: string; value: string },
  stored: SecretInjection | null,
  change: InjectionChange,
): SecretInjection | null {
  const injection = changedInjection(stored, change);
  requireNone(injectionProblems(secret, injection));
  return injection;
}

/** @param kind what clients of the route expect */
export function secretNameTaken(name: string, kind: ErrorKind = 'bad_request'): DomainError {
  const message = `A secret named ${name} exists already.`;
  return new DomainError('conflict', message, { kind, extensions: { message } });
}

export function unknownSecret(name: string): DomainError {
  return new DomainError('not_found', `There is no secret named ${name}.`);
}
