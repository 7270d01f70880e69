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

/** By the names of the route. */
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

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
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
