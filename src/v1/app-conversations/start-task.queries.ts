import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Caller } from '../../auth/access.js';
import { withinRepositories } from '../../auth/key-repositories.js';
import { mayAct } from '../../auth/user.repository.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import {
  formatTimeCursor,
  type Page,
  parsePageId,
  parseTimeCursor,
  requireAll,
  toPage,
} from '@slipway/api/pagination/page.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { endAtBytes, type Measured } from '@slipway/database/page-bytes.js';
import { countRows } from '../../observability/program-metrics.js';
import type { SandboxRowStatus } from '../sandboxes/sandbox-status.js';
import { joinSandbox } from '../sandboxes/sandbox.queries.js';
import { isFinished, type StartRequest, type StartTaskStatus } from './start-task.entity.js';

export interface StartTaskRow {
  id: string;
  user_id: string;
  status: StartTaskStatus;
  detail: string | null;
  app_conversation_id: string;
  sandbox_id: string;
  /** Its secrets are masked. */
  request: StartRequest;
  notes: string[];
  created_at: Date;
  updated_at: Date;
  sandbox_status: SandboxRowStatus | null;
  address: string | null;
  expose_port: number | null;
  /** Sort key with microseconds. */
  cursor_at: string;
}

type Reader = Pick<Caller, 'id' | 'repositories'>;

export const START_TASK_ORDERS = ['CREATED_AT', 'CREATED_AT_DESC', 'UPDATED_AT', 'UPDATED_AT_DESC'] as const;
export type StartTaskOrder = (typeof START_TASK_ORDERS)[number];

export interface StartTaskFilter {
  conversationId?: string;
  createdFrom?: Date;
}

interface WaitingStarts {
  waitsFor: 'place' | 'sandbox';
  count: number;
  /** Age of the oldest request. */
  oldestSeconds: number;
}

const COLUMNS = `
  t.id, t.user_id, t.status, t.detail, t.app_conversation_id, t.sandbox_id, t.request, t.notes, t.created_at,
  t.updated_at, s.status AS sandbox_status, s.address, s.expose_port`;

const WITH_SANDBOX = joinSandbox('t');
const TABLES = `app_conversation_start_tasks t ${WITH_SANDBOX}`;

/** Of which key's repositories it is. */
function isOfKey(repositories: string): string {
  const columns = {
    provider: `(t.request ->> 'git_provider')`,
    repository: `(t.request ->> 'selected_repository')`,
  };
  return `(${repositories}::text[] IS NULL OR ${withinRepositories(repositories, columns)})`;
}

const FILTER = `
  t.user_id = $1 AND NOT t.trimmed
  AND ($2::uuid IS NULL OR t.app_conversation_id = $2)
  AND ($3::timestamptz IS NULL OR t.created_at >= $3)
  AND ${isOfKey('$4')}`;

/** Unnamed: one plan for any combination of filters would read all rows of the user. */
const COUNT = `SELECT count(*)::int AS count FROM app_conversation_start_tasks t WHERE ${FILTER}`;

/** Looks up by id first: a plan for the average user would read all tasks of one who has many. */
const BY_ID = `
  WITH t AS MATERIALIZED (SELECT * FROM app_conversation_start_tasks WHERE id = ANY ($2::uuid[]))
  SELECT ${COLUMNS}, '' AS cursor_at FROM t ${WITH_SANDBOX} WHERE t.user_id = $1 AND NOT t.trimmed AND ${isOfKey('$3')}`;

const LARGE = ['run.request::text', 'run.detail', `array_to_string(run.notes, '')`];

const FIND_SEVERAL = new NamedStatement<StartTaskRow & Measured>(
  'start_tasks_find_several',
  endAtBytes(BY_ID, LARGE),
);

const SEARCHES = {
  CREATED_AT: searchBy('created_at', 'asc'),
  CREATED_AT_DESC: searchBy('created_at', 'desc'),
  UPDATED_AT: searchBy('updated_at', 'asc'),
  UPDATED_AT_DESC: searchBy('updated_at', 'desc'),
} satisfies Record<StartTaskOrder, string>;

const COUNT_RECENT_BY_STATUS = `
  SELECT status AS value, count(*)::int AS count FROM app_conversation_start_tasks
  WHERE status NOT IN ('READY', 'ERROR') OR updated_at > now() - interval '1 hour'
  GROUP BY status`;

/** A sandbox that starts has its place already. */
const WAITING = `
  SELECT CASE WHEN s.status IN ('STARTING', 'RUNNING') THEN 'sandbox' ELSE 'place' END AS "waitsFor",
    count(*)::int AS count, greatest(0, extract(epoch FROM max(now() - t.created_at)))::float8 AS "oldestSeconds"
  FROM ${TABLES}
  WHERE t.status = 'WAITING_FOR_SANDBOX'
  GROUP BY 1`;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Each list takes one statement. */
@Injectable()
export class StartTaskQueries {
  constructor(private readonly dataSource: DataSource) {}

  /** @throws InvalidInputError for a page id that is not of this list */
  async search(
    { id: userId, repositories }: Reader,
    filter: StartTaskFilter,
    { order, limit, pageId }: { order: StartTaskOrder; limit: number; pageId?: string },
  ): Promise<Page<StartTaskRow>> {
    const beginning = order.endsWith('_DESC')
      ? { at: 'infinity', id: LAST_ID }
      : { at: '-infinity', id: FIRST_ID };
    const after = parsePageId('start-tasks', pageId, parseTimeCursor) ?? beginning;
    const rows = await this.dataSource.query<(StartTaskRow & Measured)[]>(SEARCHES[order], [
      userId,
      ...filterValues(filter),
      repositories,
      after.at,
      after.id,
      limit + 1,
    ]);
    const cursor = (row: StartTaskRow): string => formatTimeCursor({ at: row.cursor_at, id: row.id });
    return toPage('start-tasks', rows, limit, cursor, rows[0]?.found);
  }

  async count({ id: userId, repositories }: Reader, filter: StartTaskFilter): Promise<number> {
    const values = [userId, ...filterValues(filter), repositories];
    const [row] = await this.dataSource.query<{ count: number }[]>(COUNT, values);
    return row?.count ?? 0;
  }

  /** Returns null when the task is unknown, or another user's. */
  async find(userId: string, id: string): Promise<StartTaskRow | null> {
    const [row = null] = await this.dataSource.query<StartTaskRow[]>(BY_ID, [userId, [id], null]);
    return row;
  }

  /** The last start under the id; null when there is none, or it is another user's. */
  async newest(userId: string, conversationId: string): Promise<StartTaskRow | null> {
    const order = { order: 'CREATED_AT_DESC', limit: 1 } as const;
    const { items } = await this.search({ id: userId, repositories: null }, { conversationId }, order);
    return items[0] ?? null;
  }

  /** A client that chose the id may ask before the conversation exists. */
  async isStarting(userId: string, conversationId: string): Promise<boolean> {
    const start = await this.newest(userId, conversationId);
    return start !== null && !isFinished(start.status);
  }

  /** Returns null for each that is unknown, not for the reader, or invalid. Throws InvalidInputError beyond a page. */
  async batch(
    { id: userId, repositories }: Reader,
    givenIds: readonly string[],
  ): Promise<(StartTaskRow | null)[]> {
    const ids = givenIds.map(parseHexId);
    const rows = await FIND_SEVERAL.run(this.dataSource, [
      userId,
      ids.filter((id) => id !== null),
      repositories,
    ]);
    requireAll(rows, rows[0]?.found ?? 0, 'ids');
    const found = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => (id === null ? null : (found.get(id) ?? null)));
  }

  /** Starts of all users that wait for their sandbox, or for a place within the quota. */
  async waiting(): Promise<WaitingStarts[]> {
    const found = await this.dataSource.query<WaitingStarts[]>(WAITING);
    return (['place', 'sandbox'] as const).map(
      (waitsFor) =>
        found.find((each) => each.waitsFor === waitsFor) ?? { waitsFor, count: 0, oldestSeconds: 0 },
    );
  }

  /** Unfinished starts of all users, and those that finished within the last hour. */
  async countRecentByStatus(): Promise<Map<string, number>> {
    return countRows(this.dataSource, COUNT_RECENT_BY_STATUS);
  }
}

function searchBy(column: 'created_at' | 'updated_at', direction: 'asc' | 'desc'): string {
  const beyond = direction === 'desc' ? '<' : '>';
  const run = `
    SELECT ${COLUMNS}, to_char(t.${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS cursor_at
    FROM ${TABLES}
    WHERE ${FILTER} AND (t.${column}, t.id) ${beyond} ($5::timestamptz, $6::uuid)
    ORDER BY t.${column} ${direction}, t.id ${direction} LIMIT $7`;
  return endAtBytes(run, LARGE);
}

function filterValues({ conversationId, createdFrom }: StartTaskFilter): unknown[] {
  return [conversationId ?? null, createdFrom ?? null];
}

/** An SQL condition: the conversation in the column has an unfinished start. */
export function hasUnfinishedStart(column: string): string {
  return `EXISTS (SELECT FROM app_conversation_start_tasks t
    WHERE t.app_conversation_id = ${column} AND t.status NOT IN ('READY', 'ERROR'))`;
}

/** An SQL condition: the service may take up work of the conversation: its start is over, its user not disabled. */
export function mayGoOn(conversation: string): string {
  return `${mayAct(`${conversation}.user_id`)} AND NOT ${hasUnfinishedStart(`${conversation}.id`)}`;
}
