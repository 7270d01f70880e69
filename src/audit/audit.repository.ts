import { Injectable } from '@nestjs/common';
import { Column, DataSource, Entity, type EntityManager, Index, PrimaryColumn } from 'typeorm';
import { textHead } from '@slipway/common/well-formed-text.js';
import {
  formatTimeCursor,
  type Page,
  parsePageId,
  parseTimeCursor,
  toPage,
} from '@slipway/api/pagination/page.js';
import { currentRequest } from '@slipway/api/requests/request-context.js';
import { EntityRows } from '@slipway/database/entity-rows.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import {
  type ActorKind,
  AUDIT_ACTION_NAMES,
  type AuditAction,
  type AuditOutcome,
  type AuditResource,
  resourceOf,
} from './audit-action.js';

/** Names, never stored values. */
export type AuditDetails = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/**
 * Has no foreign keys, so that entries outlive what they are about. Rows are only added, and removed when old. The
 * primary key begins with the time, which all lists are ordered by.
 */
@Entity('audit_entries')
@Index('audit_entries_actor_idx', ['actorUserId', 'at', 'id'])
@Index('audit_entries_owner_idx', ['ownerUserId', 'at', 'id'])
@Index('audit_entries_action_idx', ['action', 'at', 'id'])
@Index('audit_entries_resource_idx', ['resourceId', 'at', 'id'])
@Index('audit_entries_request_idx', ['requestId'])
@Index('audit_entries_caller_request_idx', ['callerRequestId'], { where: 'caller_request_id IS NOT NULL' })
export class AuditEntry {
  /** The database's clock. */
  @PrimaryColumn('timestamptz', { default: () => 'clock_timestamp()' }) at: Date;
  @PrimaryColumn('uuid') id: string;
  @Column('text') action: AuditAction;
  @Column('text') outcome: AuditOutcome;
  @Column('text') actorKind: ActorKind;

  /** The user, or the owner of the sandbox; null for the operator and the service. */
  @Column('uuid', { nullable: true }) actorUserId: string | null;
  @Column('text', { nullable: true }) actorKeyId: string | null;

  /** The id as the API's addresses have it; the action tells which kind of resource it is. */
  @Column('text', { nullable: true }) resourceId: string | null;
  @Column('uuid', { nullable: true }) ownerUserId: string | null;
  @Column('text', { nullable: true }) requestId: string | null;

  /** Any text, and not unique. */
  @Column('text', { nullable: true }) callerRequestId: string | null;
  @Column('text', { nullable: true }) clientAddress: string | null;
  @Column('jsonb') details: AuditDetails;
}

export interface NewAuditEntry {
  action: AuditAction;
  resourceId: string | null;
  /** Null: none, or found by the statement that appends the entry. */
  ownerId: string | null;
  outcome?: AuditOutcome;
  /** Set when the service acts by itself, even if a request is the occasion. */
  by?: 'service';
  /** Names, never values; cut to {@link MAX_ITEMS} and {@link MAX_TEXT}. */
  details?: AuditDetails;
}

interface AuditInsert {
  entries: string;
  from?: string;
  owner?: string;
  /** An object, or null, to add to those of each entry. */
  details?: string;
}

/** An INSERT of entries for the statement that makes the change, which saves a round trip. */
export function auditInsert({ entries, from, owner, details }: AuditInsert): string {
  const given = `jsonb_to_recordset(${entries}::jsonb) AS entry (action text, outcome text, actor_kind text,
    actor_user_id uuid, actor_key_id text, resource_id text, owner_user_id uuid, request_id text,
    caller_request_id text, client_address text, details jsonb)`;
  return `
  INSERT INTO audit_entries (id, action, outcome, actor_kind, actor_user_id, actor_key_id, resource_id, owner_user_id,
    request_id, caller_request_id, client_address, details)
  SELECT gen_random_uuid(), entry.action, entry.outcome, entry.actor_kind, entry.actor_user_id, entry.actor_key_id, entry.resource_id,
    ${owner ?? 'entry.owner_user_id'}, entry.request_id, entry.caller_request_id, entry.client_address,
    entry.details${details === undefined ? '' : ` || coalesce(${details}, '{}')`}
  FROM ${from === undefined ? given : `${from} CROSS JOIN ${given}`}`;
}

const APPEND = new NamedStatement<never>('audit_append', auditInsert({ entries: '$1' }));

/** An arbitrary constant: one replica at a time removes old entries. */
const PRUNE_LOCK = 7_240_815_557;

const TRY_LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS locked';

const PRUNE = `
  DELETE FROM audit_entries WHERE (at, id) IN (
    SELECT at, id FROM audit_entries WHERE at < now() - make_interval(days => $1::int) ORDER BY at LIMIT $2)`;

const MAX_ITEMS = 100;
const MAX_TEXT = 512;

/** An entry is appended in the transaction of its change, so that neither exists without the other. */
export class AuditRepository {
  /** @param outsideRequests the actor outside of requests */
  constructor(private readonly outsideRequests: 'service' | 'operator') {}

  /** Appends entries to the caller's transaction. @throws Error without one */
  async append(manager: EntityManager, ...entries: readonly NewAuditEntry[]): Promise<void> {
    if (entries.length > 0) {
      await APPEND.within(manager, [this.record(...entries)]);
    }
  }

  /** The value of the parameter `entries` of {@link auditInsert}. */
  record(...entries: readonly NewAuditEntry[]): string {
    return JSON.stringify(entries.map((entry) => this.row(entry)));
  }

  /** Removes up to `limit` old entries and records that; null while another replica does so. */
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

  /** A key that is not a user's belongs to a sandbox. */
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

/** Cuts long texts and lists; a cut list tells its length. */
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

/** Cuts a name, and replaces what JSON in PostgreSQL cannot hold: NUL, and half of a surrogate pair. */
function storable(name: string): string {
  return textHead(name, MAX_TEXT).replaceAll('\0', '\u{fffd}').toWellFormed();
}

/** Members are named like the query parameters of the route. */
export interface AuditFilter {
  actor_user_id?: string;
  owner_user_id?: string;
  action?: AuditAction;
  resource_type?: AuditResource;
  resource_id?: string;
  request_id?: string;
  caller_request_id?: string;
  /** Inclusive. */
  since?: Date;
  /** Exclusive. */
  until?: Date;
}

/**
 * Hides users from the planner, which would scan from the newest entry on for a user with many entries.
 */
const CONDITIONS = {
  actor_user_id: (parameter: string) => `e.actor_user_id = (SELECT ${parameter}::uuid)`,
  owner_user_id: (parameter: string) => `e.owner_user_id = (SELECT ${parameter}::uuid)`,
  action: (parameter: string) => `e.action = ANY (${parameter}::text[])`,
  resource_id: (parameter: string) => `e.resource_id = ${parameter}`,
  request_id: (parameter: string) => `e.request_id = ${parameter}`,
  caller_request_id: (parameter: string) => `e.caller_request_id = ${parameter}`,
  since: (parameter: string) => `e.at >= ${parameter}`,
  until: (parameter: string) => `e.at < ${parameter}`,
};

/** Statements are planned with their values (docs/adr/0006), so that each uses its best index. */
@Injectable()
export class AuditQueries {
  private readonly rows: EntityRows<AuditEntry>;

  constructor(private readonly dataSource: DataSource) {
    this.rows = new EntityRows(dataSource.getRepository(AuditEntry), 'e');
  }

  /** A page of entries, newest first. @throws InvalidInputError for a page id of another list */
  async page(filter: AuditFilter, limit: number, pageId: string | undefined): Promise<Page<AuditEntry>> {
    const values: unknown[] = [];
    const param = (value: unknown): string => `$${values.push(value)}`;
    const wanted = valuesOf(filter);
    const conditions = Object.entries(CONDITIONS).flatMap(([name, condition]) =>
      wanted[name] === undefined ? [] : condition(param(wanted[name])),
    );
    const after = parsePageId('audit', pageId, parseTimeCursor);
    if (after !== null) {
      conditions.push(`(e.at, e.id) < (${param(after.at)}::timestamptz, ${param(after.id)}::uuid)`);
    }
    const rows = await this.dataSource.query<Record<string, unknown>[]>(
      `SELECT ${this.rows.columns}, to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS cursor_at
       FROM audit_entries e
       ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
       ORDER BY e.at DESC, e.id DESC LIMIT ${param(limit + 1)}`,
      values,
    );
    const { items, nextPageId } = toPage('audit', rows, limit, ({ cursor_at: at, id }) =>
      formatTimeCursor({ at: String(at), id: String(id) }),
    );
    return { items: items.map((row) => this.rows.entity(row)), nextPageId };
  }
}

function valuesOf({ action, resource_type: type, ...filter }: AuditFilter): Record<string, unknown> {
  const actions = AUDIT_ACTION_NAMES.filter(
    (name) => (action ?? name) === name && (type ?? resourceOf(name)) === resourceOf(name),
  );
  return {
    ...filter,
    action: actions.length < AUDIT_ACTION_NAMES.length ? actions : undefined,
    // Cut as when it was stored.
    resource_id: filter.resource_id && storable(filter.resource_id),
  };
}
