import { Column, Entity, type EntityManager, Index, PrimaryColumn } from 'typeorm';
import { textHead } from '@slipway/common/well-formed-text.js';
import { currentRequest } from '../common/requests/request-context.js';
import { NamedStatement } from '../database/named-statement.js';
import type { ActorKind, AuditAction, AuditOutcome } from './audit-action.js';

/** Names in the details of an entry: never a stored value. */
export type AuditDetails = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/**
 * Who did what. Refers to nothing, so that it outlives what it is about; rows are only ever added, and removed when they
 * are old. The primary key begins with the time, which all lists are ordered by.
 */
@Entity('audit_entries')
@Index('audit_entries_actor_idx', ['actorUserId', 'at', 'id'])
@Index('audit_entries_owner_idx', ['ownerUserId', 'at', 'id'])
@Index('audit_entries_action_idx', ['action', 'at', 'id'])
@Index('audit_entries_resource_idx', ['resourceId', 'at', 'id'])
@Index('audit_entries_request_idx', ['requestId'])
@Index('audit_entries_caller_request_idx', ['callerRequestId'], { where: 'caller_request_id IS NOT NULL' })
export class AuditEntry {
  /** By the clock of the database. */
  @PrimaryColumn('timestamptz', { default: () => 'clock_timestamp()' })
  at: Date;

  @PrimaryColumn('uuid')
  id: string;

  @Column('text')
  action: AuditAction;

  @Column('text')
  outcome: AuditOutcome;

  @Column('text', { name: 'actor_kind' })
  actorKind: ActorKind;

  /** The user, or the owner of the sandbox; null for the operator and the service. */
  @Column('uuid', { name: 'actor_user_id', nullable: true })
  actorUserId: string | null;

  /** The public part of the key, or the id of the sandbox whose key it was. */
  @Column('text', { name: 'actor_key_id', nullable: true })
  actorKeyId: string | null;

  /** Id or name, as it stands in the addresses of the API; what kind of thing it is, the action says. */
  @Column('text', { name: 'resource_id', nullable: true })
  resourceId: string | null;

  /** Its owner, who may have been removed since. */
  @Column('uuid', { name: 'owner_user_id', nullable: true })
  ownerUserId: string | null;

  @Column('text', { name: 'request_id', nullable: true })
  requestId: string | null;

  /** `X-Request-Id` of the caller: any text, which other requests may have too. */
  @Column('text', { name: 'caller_request_id', nullable: true })
  callerRequestId: string | null;

  /** Where the connection came from. */
  @Column('text', { name: 'client_address', nullable: true })
  clientAddress: string | null;

  @Column('jsonb')
  details: AuditDetails;
}

/** What a feature records about a change; the actor is known from the request. */
export interface NewAuditEntry {
  action: AuditAction;
  /** Id or name, as it stands in the addresses of the API. */
  resourceId: string | null;
  /** Its owner; null: none, or the statement that appends the entry finds it. */
  ownerId: string | null;
  /** `done` by default. */
  outcome?: AuditOutcome;
  /** The service acts by itself, even if a request is the occasion. */
  by?: 'service';
  /** Names, never values; cut to {@link MAX_ITEMS} and {@link MAX_TEXT}. */
  details?: AuditDetails;
}

/** How an INSERT of entries is made a part of another statement. */
interface AuditInsert {
  /** Parameter with the text of `AuditRepository.record`. */
  entries: string;
  /** Further relation; an entry is added for each of its rows. */
  from?: string;
  /** SQL expression of the owner's id. */
  owner?: string;
}

/**
 * The INSERT of audit entries, for statements of other features too: in the same statement as the change, an entry costs
 * no round trip.
 */
export function auditInsert({ entries, from, owner }: AuditInsert): string {
  const given = `jsonb_to_recordset(${entries}::jsonb) AS entry (action text, outcome text, actor_kind text,
    actor_user_id uuid, actor_key_id text, resource_id text, owner_user_id uuid, request_id text,
    caller_request_id text, client_address text, details jsonb)`;
  return `
  INSERT INTO audit_entries (id, action, outcome, actor_kind, actor_user_id, actor_key_id, resource_id, owner_user_id,
    request_id, caller_request_id, client_address, details)
  SELECT gen_random_uuid(), entry.action, entry.outcome, entry.actor_kind, entry.actor_user_id, entry.actor_key_id, entry.resource_id,
    ${owner ?? 'entry.owner_user_id'}, entry.request_id, entry.caller_request_id, entry.client_address,
    entry.details
  FROM ${from === undefined ? given : `${from} CROSS JOIN ${given}`}`;
}

const APPEND = new NamedStatement<never>('audit_append', auditInsert({ entries: '$1' }));

/** One replica removes old entries at a time; the others try again later. Any constant. */
const PRUNE_LOCK = 7_240_815_557;

const TRY_LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS locked';

const PRUNE = `
  DELETE FROM audit_entries WHERE (at, id) IN (
    SELECT at, id FROM audit_entries WHERE at < now() - make_interval(days => $1::int) ORDER BY at LIMIT $2)`;

const MAX_ITEMS = 100;
const MAX_TEXT = 512;

/**
 * The `audit_entries` table, to which entries are only ever added. An entry is appended in the transaction of the change
 * it tells of: neither is there without the other.
 */
export class AuditRepository {
  /** @param outsideRequests the actor in this process outside of requests */
  constructor(private readonly outsideRequests: 'service' | 'operator') {}

  /**
   * Appends entries to the caller's transaction.
   *
   * @throws Error without a transaction
   */
  async append(manager: EntityManager, ...entries: readonly NewAuditEntry[]): Promise<void> {
    if (entries.length > 0) {
      await APPEND.within(manager, [this.record(...entries)]);
    }
  }

  /** The parameter that {@link auditInsert} names. */
  record(...entries: readonly NewAuditEntry[]): string {
    return JSON.stringify(entries.map((entry) => this.row(entry)));
  }

  /**
   * Removes a batch of entries that are older than so many days, and appends that it did.
   *
   * @returns how many were removed; null while another replica removes some
   */
  async prune(manager: EntityManager, days: number, limit: number): Promise<number | null> {
    return manager.transaction(async (transaction) => {
      const [lock] = await transaction.query<{ locked: boolean }[]>(TRY_LOCK, [PRUNE_LOCK]);
      if (lock?.locked !== true) {
        return null;
      }
      const [, removed] = await transaction.query<[unknown, number]>(PRUNE, [days, limit]);
      if (removed > 0) {
        await this.append(transaction, {
          action: 'audit.prune',
          resourceId: null,
          ownerId: null,
          details: { entries: removed },
        });
      }
      return removed;
    });
  }

  private row({ action, resourceId, ownerId, outcome = 'done', by, details = {} }: NewAuditEntry): object {
    const request = currentRequest();
    const { kind, userId, keyId } = by === undefined ? this.actor() : { kind: by, userId: null, keyId: null };
    return {
      action,
      outcome,
      actor_kind: kind,
      actor_user_id: userId,
      actor_key_id: keyId,
      resource_id: resourceId === null ? null : storable(resourceId),
      owner_user_id: ownerId,
      request_id: request?.requestId ?? null,
      caller_request_id: request?.callerRequestId ?? null,
      client_address: request?.address ?? null,
      details: bounded(details),
    };
  }

  /** A request whose key is not a user's has that of a sandbox. */
  private actor(): { kind: ActorKind; userId: string | null; keyId: string | null } {
    const { userId, caller, keyId } = currentRequest() ?? {};
    if (userId === undefined) {
      return { kind: this.outsideRequests, userId: null, keyId: null };
    }
    return keyId === undefined
      ? { kind: 'sandbox', userId, keyId: caller ?? null }
      : { kind: 'user', userId, keyId };
  }
}

/** The details with long texts and lists cut; a list that was cut says how many names it had. */
function bounded(details: AuditDetails): AuditDetails {
  return Object.fromEntries(
    Object.entries(details).flatMap(([name, value]): [string, AuditDetails[string]][] => {
      if (typeof value === 'string') {
        return [[name, storable(value)]];
      }
      if (typeof value !== 'object') {
        return [[name, value]];
      }
      const items = value.slice(0, MAX_ITEMS).map(storable);
      return value.length > items.length
        ? [
            [name, items],
            [`${name}_count`, value.length],
          ]
        : [[name, items]];
    }),
  );
}

/** A name that JSON in PostgreSQL can hold: no NUL, no half of a surrogate pair, not too long. */
export function storable(name: string): string {
  return textHead(name, MAX_TEXT).replaceAll('\0', '\u{fffd}').toWellFormed();
}
