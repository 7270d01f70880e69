import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { decodePageId, type Page, toPage } from '../../common/pagination/page.js';
import { formatTimeCursor, parseTimeCursor } from '../../common/pagination/time-cursor.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { StartTaskRow } from './start-task-row.js';

export const START_TASK_ORDERS = ['CREATED_AT', 'CREATED_AT_DESC', 'UPDATED_AT', 'UPDATED_AT_DESC'] as const;
export type StartTaskOrder = (typeof START_TASK_ORDERS)[number];

/** Which start tasks are wanted; what is left out does not matter. */
export interface StartTaskFilter {
  /** UUID with dashes. */
  conversationId?: string;
  createdFrom?: Date;
}

const COLUMNS = `
  t.id, t.user_id, t.status, t.detail, t.app_conversation_id, t.sandbox_id, t.request, t.notes, t.created_at,
  t.updated_at, s.status AS sandbox_status, s.address`;

const TABLES = `
  app_conversation_start_tasks t LEFT JOIN sandboxes s ON s.id = t.sandbox_id AND s.user_id = t.user_id`;

const FILTER = `
  t.user_id = $1
  AND ($2::uuid IS NULL OR t.app_conversation_id = $2)
  AND ($3::timestamptz IS NULL OR t.created_at >= $3)`;

/** Like the searches not named: a plan for whichever filters there may be reads all rows of the user. */
const COUNT = `SELECT count(*)::int AS count FROM app_conversation_start_tasks t WHERE ${FILTER}`;

const FIND = new NamedStatement<StartTaskRow>(
  'start_tasks_find',
  `SELECT ${COLUMNS}, '' AS cursor_at FROM ${TABLES} WHERE t.user_id = $1 AND t.id = ANY ($2::uuid[])`,
);

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const SEARCHES = {
  CREATED_AT: searchBy('created_at', 'asc'),
  CREATED_AT_DESC: searchBy('created_at', 'desc'),
  UPDATED_AT: searchBy('updated_at', 'asc'),
  UPDATED_AT_DESC: searchBy('updated_at', 'desc'),
} satisfies Record<StartTaskOrder, string>;

/** Reads start tasks of one user, each list with one statement. */
@Injectable()
export class StartTasksReader {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** A page id that is none of ours means the first page. */
  async search(
    userId: string,
    filter: StartTaskFilter,
    { order, limit, pageId }: { order: StartTaskOrder; limit: number; pageId?: string },
  ): Promise<Page<StartTaskRow>> {
    const beginning = order.endsWith('_DESC')
      ? { at: 'infinity', id: LAST_ID }
      : { at: '-infinity', id: FIRST_ID };
    const after = parseTimeCursor(decodePageId(pageId)) ?? beginning;
    const rows = await this.dataSource.query<StartTaskRow[]>(SEARCHES[order], [
      userId,
      ...filterValues(filter),
      after.at,
      after.id,
      limit + 1,
    ]);
    return toPage(rows, limit, (row) => formatTimeCursor({ at: row.cursor_at, id: row.id }));
  }

  async count(userId: string, filter: StartTaskFilter): Promise<number> {
    const [row] = await this.dataSource.query<{ count: number }[]>(COUNT, [userId, ...filterValues(filter)]);
    return row?.count ?? 0;
  }

  /** By id; unknown ones and those of other users are not in it. */
  async findAll(userId: string, ids: readonly string[]): Promise<Map<string, StartTaskRow>> {
    const rows = ids.length === 0 ? [] : await FIND.run(this.dataSource, [userId, ids]);
    return new Map(rows.map((row) => [row.id, row]));
  }
}

function searchBy(column: 'created_at' | 'updated_at', direction: 'asc' | 'desc'): string {
  const beyond = direction === 'desc' ? '<' : '>';
  return `
    SELECT ${COLUMNS}, to_char(t.${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS cursor_at
    FROM ${TABLES}
    WHERE ${FILTER} AND (t.${column}, t.id) ${beyond} ($4::timestamptz, $5::uuid)
    ORDER BY t.${column} ${direction}, t.id ${direction} LIMIT $6`;
}

function filterValues({ conversationId, createdFrom }: StartTaskFilter): unknown[] {
  return [conversationId ?? null, createdFrom ?? null];
}
