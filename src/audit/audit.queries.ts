import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import {
  formatTimeCursor,
  type Page,
  parsePageId,
  parseTimeCursor,
  toPage,
} from '../common/pagination/page.js';
import { EntityRows } from '../database/entity-rows.js';
import { AUDIT_ACTION_NAMES, type AuditAction, type AuditResource, resourceOf } from './audit-action.js';
import { AuditEntry, storable } from './audit.repository.js';

export interface AuditFilter {
  actorUserId?: string;
  ownerUserId?: string;
  action?: AuditAction;
  resourceType?: AuditResource;
  resourceId?: string;
  requestId?: string;
  callerRequestId?: string;
  /** Inclusive. */
  since?: Date;
  /** Exclusive. */
  until?: Date;
}

type AuditCondition =
  'actor' | 'owner' | 'actions' | 'resource' | 'request' | 'callerRequest' | 'since' | 'until';

/**
 * Hides `actor` and `owner` from the planner, which would scan from the newest entry on for a user with many entries.
 */
const CONDITIONS: Record<AuditCondition, (parameter: string) => string> = {
  actor: (parameter) => `e.actor_user_id = (SELECT ${parameter}::uuid)`,
  owner: (parameter) => `e.owner_user_id = (SELECT ${parameter}::uuid)`,
  actions: (parameter) => `e.action = ANY (${parameter}::text[])`,
  resource: (parameter) => `e.resource_id = ${parameter}`,
  request: (parameter) => `e.request_id = ${parameter}`,
  callerRequest: (parameter) => `e.caller_request_id = ${parameter}`,
  since: (parameter) => `e.at >= ${parameter}`,
  until: (parameter) => `e.at < ${parameter}`,
};

/** Statements are planned with their values (docs/adr/0006), so that each uses its best index. */
@Injectable()
export class AuditQueries {
  private readonly rows: EntityRows<AuditEntry>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.rows = new EntityRows(dataSource.getRepository(AuditEntry), 'e');
  }

  /** A page of entries, newest first. @throws InvalidInputError for a page id of another list */
  async page(filter: AuditFilter, limit: number, pageId: string | undefined): Promise<Page<AuditEntry>> {
    const values: unknown[] = [];
    const param = (value: unknown): string => `$${values.push(value)}`;
    const conditions = conditionsOf(filter).map(([name, value]) => CONDITIONS[name](param(value)));
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

function conditionsOf(filter: AuditFilter): [AuditCondition, unknown][] {
  const {
    actorUserId,
    ownerUserId,
    action,
    resourceType,
    resourceId,
    requestId,
    callerRequestId,
    since,
    until,
  } = filter;
  const actions = AUDIT_ACTION_NAMES.filter(
    (name) => (action ?? name) === name && (resourceType ?? resourceOf(name)) === resourceOf(name),
  );
  const conditions: [AuditCondition, unknown][] = [
    ['actor', actorUserId],
    ['owner', ownerUserId],
    ['actions', actions.length < AUDIT_ACTION_NAMES.length ? actions : undefined],
    // Cut as when it was stored.
    ['resource', resourceId === undefined ? undefined : storable(resourceId)],
    ['request', requestId],
    ['callerRequest', callerRequestId],
    ['since', since],
    ['until', until],
  ];
  return conditions.filter(([, value]) => value !== undefined);
}
