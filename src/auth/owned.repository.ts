import {
  Column,
  CreateDateColumn,
  type DataSource,
  type EntityManager,
  type EntityTarget,
  type FindOptionsWhere,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import type { AuditAction } from '../audit/audit-action.js';
import type { AuditRepository } from '../audit/audit.repository.js';
import { DomainError, found, tooMany } from '../common/errors/domain-error.js';
import { currentRequest } from '@slipway/api/requests/request-context.js';
import { isSessionId } from './sessions/session-cookie.js';
import { lockUser, OwnedRow } from './user.repository.js';

export abstract class OwnedThing extends OwnedRow {
  @PrimaryColumn('uuid') id: string;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  /** Id of the key that it was made with. */
  @Column('text', { nullable: true }) madeByKey: string | null;
}

/** The credentials that a new key is made with. */
export interface Maker {
  /** Null where no key was used. A browser's session stands for the key that it was begun with. */
  madeByKey: string | null;
  /** The sign-in of a session that was begun at the issuer; `sid` is the issuer's name for it. */
  identityId: string | null;
  sid: string | null;
}

/** Who ends a session waits, and finds what was made with it. */
const LOCK_SESSION = `
  SELECT api_key_id AS "madeByKey", identity_id AS "identityId", sid FROM sessions WHERE id = $1 FOR KEY SHARE`;

/** Who unlinks the sign-in waits, and finds what was made with it. */
const LOCK_LINK = 'SELECT made_by_key AS key FROM user_identities WHERE id = $1 FOR KEY SHARE';
/** Ids of tokens of the issuer (`BearerTokenVerifier`). */
const OF_TOKEN = /^jwt_([0-9a-f-]{36})_/;

/** Who revokes a key waits, and finds what was made with it. */
const LOCK_KEY = 'SELECT id FROM api_keys WHERE id = $1 AND revoked_at IS NULL FOR SHARE';
const KEY_ID = /^[0-9A-Za-z]{8}$/;

/** The maker by the current request. @throws DomainError unauthorized where its key or session has ended meanwhile */
export async function makerOf(manager: EntityManager): Promise<Maker> {
  const id = currentRequest()?.keyId ?? null;
  const none = { madeByKey: id, identityId: null, sid: null };
  const [, linked] = OF_TOKEN.exec(id ?? '') ?? [];
  if (linked !== undefined) {
    // A token of the issuer ends by itself, and stands for the key that linked its sign-in.
    return { ...none, madeByKey: (await linkingKey(manager, linked)) ?? id };
  }
  const [maker] =
    id !== null && isSessionId(id) ? await manager.query<(Maker | undefined)[]>(LOCK_SESSION, [id]) : [none];
  const madeByKey = maker?.madeByKey ?? id;
  const isKey = madeByKey !== null && KEY_ID.test(madeByKey);
  if (!maker || (isKey && (await manager.query<unknown[]>(LOCK_KEY, [madeByKey])).length === 0)) {
    throw new DomainError('unauthorized', 'Unauthorized');
  }
  return { ...maker, madeByKey };
}

/**
 * The key that a new row other than a key stands or falls with: by a session of the issuer, the one that linked its sign-in.
 * Throws as {@link makerOf}.
 */
export async function keyBehind(manager: EntityManager): Promise<string | null> {
  const { madeByKey, identityId } = await makerOf(manager);
  return (identityId && (await linkingKey(manager, identityId))) ?? madeByKey;
}

/** The key that linked a sign-in, if one did. @throws DomainError unauthorized where that is unlinked meanwhile */
async function linkingKey(manager: EntityManager, identityId: string): Promise<string | null> {
  const [link] = await manager.query<{ key: string | null }[]>(LOCK_LINK, [identityId]);
  if (link === undefined) {
    throw new DomainError('unauthorized', 'Unauthorized');
  }
  return link.key;
}

export abstract class RowOfOwner extends OwnedThing {
  /** The user's personal organization, whose id is that of the user, until there are others. */
  @Column('uuid') orgId: string;
}

/** The user and organization that a request acts for. */
export type Owner = Pick<RowOfOwner, 'userId' | 'orgId'>;

/** The columns that identify a row's owner; an owner may have further columns. */
type RowOwner = Pick<OwnedThing, 'userId'>;

interface Rules {
  /** The prefix of this kind's actions in the audit. */
  kind: 'automation' | 'automation_webhook' | 'webhook_endpoint';
  noun: string;
  /** The most rows that one user may have. */
  most: number;
}

/**
 * Rows that a user makes, changes and removes, each time with an entry of the audit. Methods throw DomainError not_found
 * for what is not the owner's.
 */
export abstract class OwnedRepository<Row extends OwnedThing> extends Repository<Row> {
  protected constructor(
    type: EntityTarget<Row>,
    { manager }: DataSource,
    protected readonly audit: AuditRepository,
    private readonly rules: Rules,
  ) {
    super(type, manager);
  }

  async getOf(owner: RowOwner, id: string): Promise<Row> {
    return found(await this.findOneBy(whereOf<Row>({ ...owner, id })), this.rules.noun);
  }

  /**
   * Changes what `change` makes of the locked row. Throws as `change`.
   * @param given its members are named in the audit
   */
  async changeOf(
    owner: RowOwner,
    id: string,
    given: object,
    change: (row: Row) => Partial<Row>,
    action: AuditAction = `${this.rules.kind}.update`,
  ): Promise<Row> {
    const details = { members: Object.keys(given) };
    return this.manager.transaction(async (manager) => {
      const row = found(await this.lock(manager, { ...owner, id }), this.rules.noun);
      await manager.update(this.target, { id }, change(row) as object);
      await this.audit.append(manager, { action, resourceId: id, ownerId: owner.userId, details });
      return manager.findOneByOrFail(this.target, whereOf<Row>({ id }));
    });
  }

  async removeOf(owner: RowOwner, id: string): Promise<void> {
    const { kind, noun } = this.rules;
    await this.manager.transaction(async (manager) => {
      const { affected } = await manager.delete(this.target, { ...owner, id });
      found(affected === 1 ? id : null, noun);
      await this.audit.append(manager, { action: `${kind}.delete`, resourceId: id, ownerId: owner.userId });
    });
  }

  /** Other changes of the row wait until the transaction ends. */
  async lock(manager: EntityManager, which: Partial<RowOwner> & { id: string }): Promise<Row | null> {
    return manager.findOne(this.target, { where: whereOf<Row>(which), lock: { mode: 'pessimistic_write' } });
  }

  /** Adds a row, unless `inPlace` finds one. Throws as `inPlace`. @throws DomainError conflict for too many */
  protected async addOf(
    owner: RowOwner,
    id: string,
    values: Partial<Row>,
    inPlace: (manager: EntityManager) => Promise<Row | null> = async () => null,
  ): Promise<{ row: Row; isNew: boolean }> {
    const { kind, noun, most } = this.rules;
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, owner.userId);
      const known = await inPlace(manager);
      if (known !== null) {
        return { row: known, isNew: false };
      }
      if ((await manager.countBy(this.target, whereOf<Row>({ userId: owner.userId }))) >= most) {
        throw tooMany(noun, most);
      }
      const madeByKey = await keyBehind(manager);
      await manager.insert(this.target, { id, ...owner, ...values, madeByKey } as object);
      await this.audit.append(manager, { action: `${kind}.create`, resourceId: id, ownerId: owner.userId });
      return { row: await manager.findOneByOrFail(this.target, whereOf<Row>({ id })), isNew: true };
    });
  }
}

/** TypeORM cannot see that every row has these columns. */
function whereOf<Row extends OwnedThing>(columns: Partial<OwnedThing>): FindOptionsWhere<Row> {
  return columns as FindOptionsWhere<Row>;
}
