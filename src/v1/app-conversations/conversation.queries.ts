import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import { type Caller, isOfKey, mayRead } from '../../auth/access.js';
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
import { unknownConversation } from '../events/events.service.js';
import { isShownRunning } from '../sandboxes/sandbox-status.js';
import { joinSandbox } from '../sandboxes/sandbox.queries.js';
import { IS_STOPPED, STATE } from './shown-state.js';
import { type ConversationFilter, type ConversationRow, LARGE } from './conversation-row.js';
import { mayGoOn } from './start-task.queries.js';

/** All columns but `sub_conversation_ids`; a parent that may not be found is none. `mayFind` is SQL about a row. */
export function conversationColumns(mayFind = (_row: string): string => 'true'): string {
  return `
  (SELECT parent.id FROM app_conversations parent WHERE parent.id = c.parent_conversation_id AND ${mayFind('parent')})
    AS parent_conversation_id,
  c.id, c.user_id, c.visibility, c.sandbox_id, c.selected_repository, c.selected_branch, c.git_provider, c.title, c.trigger,
  c.pr_number, c.llm_model, c.agent, c.agent_kind, c.public, c.tags, c.metadata,
  c.working_branch, c.pull_requests, c.working_dir, c.sandbox_generation,
  c.created_at, c.updated_at,
  to_char(c.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at_text,
  s.status AS sandbox_status,
  CASE WHEN s.status = 'ERROR' THEN json_build_object('at', s.updated_at, 'cause', s.status_detail) END AS sandbox_failure,
  CASE WHEN ${isShownRunning('s')} THEN s.session_key END AS session_key,
  CASE WHEN ${isShownRunning('s')} THEN s.address END AS address, s.expose_port,
  CASE WHEN f.execution_status = 'running' AND ${IS_STOPPED} THEN 'paused' ELSE f.execution_status END AS execution_status,
  CASE WHEN f.execution_status IN ('error', 'stuck') THEN f.error END AS error,
  f.metrics,
  CASE WHEN c.result_schema IS NOT NULL THEN f.result END AS result,
  CASE WHEN p.conversation_id IS NOT NULL THEN json_build_object('state', p.state, 'round', p.round, 'reason', p.reason,
    'pull_request', CASE WHEN p.number IS NOT NULL THEN
      json_build_object('repository', p.repository, 'number', p.number, 'url', p.url) END) END AS follow`;
}

export const JOINED_TABLES = `
  ${joinSandbox('c')}
  LEFT JOIN followed_conversations f ON f.id = c.id
  LEFT JOIN followed_pull_requests p ON p.conversation_id = c.id`;

/** Which conversations a list has, by the owner that was asked for; $1 is the reader. */
const LISTED = {
  me: 'c.user_id = $1',
  others: "c.visibility = 'organization' AND c.user_id <> $1",
  any: "(c.user_id = $1 OR c.visibility = 'organization')",
};

/** $2 to $13 filter. A row changed before a moment was created before it, which bounds the scan. */
const FILTER = `
  AND ($2::text IS NULL OR c.title ILIKE $2)
  AND ($3::timestamptz IS NULL OR c.created_at >= $3)
  AND ($4::timestamptz IS NULL OR c.created_at < $4)
  AND ($5::timestamptz IS NULL OR c.updated_at >= $5)
  AND ($6::timestamptz IS NULL OR c.updated_at < $6 AND c.created_at < $6)
  AND ($7::text IS NULL OR c.sandbox_id = $7)
  AND ($8::boolean OR c.parent_conversation_id IS NULL)
  AND ($9::jsonb IS NULL OR c.tags @> $9)
  AND ($10::text IS NULL OR c.selected_repository = $10)
  AND ($11::text IS NULL OR c.git_provider = $11)
  AND ($12::text IS NULL OR c.trigger = 'automation' AND c.metadata ->> 'automation_id' = $12)
  AND ($13::text IS NULL OR $13 = ${STATE})`;

/**
 * @param after first parameter of the page position; the next ones are its id and the limit
 * @param repositories as for `mayRead`; a list is the same for administrators
 */
function search(
  filter: string,
  after: number,
  { from = 'app_conversations c', repositories = 'NULL' } = {},
): string {
  return endAtBytes(
    `
  SELECT ${conversationColumns((row) => mayRead(row, '$1', 'false', repositories))}, '{}'::uuid[] AS sub_conversation_ids
  FROM ${from} ${JOINED_TABLES}
  WHERE ${filter} AND (c.created_at, c.id) < ($${after}::timestamptz, $${after + 1}::uuid)
  ORDER BY c.created_at DESC, c.id DESC LIMIT $${after + 2}`,
    LARGE,
  );
}

const SEARCHES = searches(FILTER);
/** Keys for some repositories have an index of their own, so theirs are other statements. */
const SEARCHES_WITHIN = searches(`${FILTER} AND ${isOfKey('c', '$17')}`, '$17');

function searches(filter: string, repositories = 'NULL'): Record<'me' | 'others' | 'any', string> {
  return {
    me: search(LISTED.me + filter, 14, { repositories }),
    others: search(LISTED.others + filter, 14, { repositories }),
    any: search('true', 14, { from: readable(filter, 14), repositories }),
  };
}

/** The newest of each index: a condition with OR would read and sort all rows. What is in both comes once. */
function readable(filter: string, after: number): string {
  const newest = (condition: string): string => `(
    SELECT c.* FROM app_conversations c ${JOINED_TABLES}
    WHERE ${condition} ${filter} AND (c.created_at, c.id) < ($${after}::timestamptz, $${after + 1}::uuid)
    ORDER BY c.created_at DESC, c.id DESC LIMIT $${after + 2})`;
  return `(
  SELECT DISTINCT ON (created_at, id) * FROM (${newest(LISTED.me)} UNION ALL ${newest("c.visibility = 'organization'")}) each
  ORDER BY created_at DESC, id DESC) c`;
}

const NO_PARENT = 'AND c.parent_conversation_id IS NULL';
const UNFILTERED = {
  me: unfiltered('app_conversations_search', search(`${LISTED.me} ${NO_PARENT}`, 2)),
  any: unfiltered('app_conversations_search_any', search('true', 2, { from: readable(NO_PARENT, 2) })),
};

function unfiltered(name: string, sql: string): NamedStatement<ConversationRow & Measured> {
  return new NamedStatement(name, sql);
}

function count(condition: string): string {
  return `SELECT count(*)::int AS count FROM app_conversations c ${JOINED_TABLES} WHERE ${condition} ${FILTER}`;
}

/** Looks up by id first: a plan for the average user would read all conversations of one who has many. */
function byId(mayFind: (row: string) => string): string {
  return `
  WITH c AS MATERIALIZED (SELECT * FROM app_conversations WHERE id = ANY ($2::uuid[]))
   SELECT ${conversationColumns(mayFind)},
     ARRAY(SELECT sub.id FROM app_conversations sub
           WHERE sub.parent_conversation_id = c.id AND sub.user_id = c.user_id AND ${mayFind('sub')}
           ORDER BY sub.created_at, sub.id) AS sub_conversation_ids
   FROM c ${JOINED_TABLES}
   WHERE ${mayFind('c')}`;
}

const FIND = new NamedStatement<ConversationRow>(
  'app_conversations_find',
  byId((row) => `${row}.user_id = $1`),
);
const FIND_READABLE = new NamedStatement<ConversationRow & Measured>(
  'app_conversations_find_readable',
  endAtBytes(
    byId((row) => mayRead(row, '$1', '$3', '$4')),
    LARGE,
  ),
);

/** The agent server was restarted since it got the credentials. */
export interface ResumableConversation {
  id: string;
  userId: string;
  sandboxId: string;
  /** The status last observed; soon after a restart it is what loading made of it. */
  executionStatus: ConversationStatus | null;
}

/** Conversations that are being started get their credentials from the start. */
const TO_RESUME = `
  s.status = 'RUNNING' AND c.sandbox_generation < s.generation AND ${mayGoOn('c')}`;

const FIND_SANDBOXES_TO_RESUME = `
  SELECT DISTINCT s.id FROM app_conversations c ${joinSandbox('c')}
  WHERE s.host_id = $1 AND ${TO_RESUME}`;

const FIND_TO_RESUME = `
  SELECT c.id, c.user_id AS "userId", c.sandbox_id AS "sandboxId", f.execution_status AS "executionStatus"
  FROM app_conversations c ${JOINED_TABLES}
  WHERE s.id = $1 AND ${TO_RESUME}
  ORDER BY c.updated_at DESC`;

/** SQL: joins the conversation of the row as `c`. */
export function joinConversation(column: string): string {
  return `JOIN app_conversations c ON c.id = ${column}`;
}

/** An SQL condition: the conversation in the column is stored, so its start was not the end of it. */
export function isStored(column: string): string {
  return `EXISTS (SELECT FROM app_conversations c WHERE c.id = ${column})`;
}

/** Parents of parents, of a conversation or of a start that is not one yet. */
const ABOVE = `
  WITH RECURSIVE above AS (
    (SELECT parent_conversation_id AS id, 1 AS depth FROM app_conversations WHERE id = $2 AND user_id = $1
    UNION ALL
    SELECT (t.request ->> 'parent_conversation_id')::uuid, 1 FROM app_conversation_start_tasks t
    WHERE t.app_conversation_id = $2 AND t.user_id = $1 AND NOT ${isStored('t.app_conversation_id')})
    UNION ALL
    SELECT c.parent_conversation_id, above.depth + 1 FROM above JOIN app_conversations c USING (id)
    WHERE c.user_id = $1 AND above.depth < 100)
  SELECT id FROM above WHERE id IS NOT NULL ORDER BY depth`;

/**
 * What the conversation may spend, and what it and all below it have spent, each of its children with all below it: what
 * was granted to one counts as spent until all of them have ended ($3 is about to go on). Starts that wait count, too.
 */
const SPENDING = `
  WITH RECURSIVE below AS (
    SELECT id, 0 AS depth, NULL::uuid AS child FROM app_conversations WHERE id = $2 AND user_id = $1
    UNION ALL
    SELECT n.id, below.depth + 1, coalesce(below.child, n.id) FROM below JOIN (
      SELECT id, parent_conversation_id::text AS parent FROM app_conversations WHERE user_id = $1
      UNION ALL
      SELECT t.app_conversation_id, t.request ->> 'parent_conversation_id' FROM app_conversation_start_tasks t
      WHERE t.user_id = $1 AND t.status NOT IN ('READY', 'ERROR') AND NOT ${isStored('t.app_conversation_id')}
    ) n ON n.parent = below.id::text
    WHERE below.depth < 100
  ), spent AS (
    SELECT below.child, coalesce(sum((f.metrics ->> 'accumulated_cost')::float8), 0) AS cost,
      min(least((f.metrics ->> 'max_budget_per_task')::float8, (t.request ->> 'max_budget')::float8))
        FILTER (WHERE below.depth < 2) AS budget,
      bool_and(coalesce(f.execution_status IN ('finished', 'error', 'stuck'), false) AND below.id IS DISTINCT FROM $3::uuid)
        AS ended,
      coalesce(bool_or(below.depth = 1 AND (t.request ->> 'started_by_agent')::bool), false) AS by_agent
    FROM below LEFT JOIN followed_conversations f USING (id)
    LEFT JOIN app_conversation_start_tasks t ON t.app_conversation_id = below.id
    GROUP BY below.child
  ), counted AS (
    SELECT child, budget, by_agent, CASE WHEN child IS NULL OR ended THEN cost ELSE greatest(cost, budget) END AS spent
    FROM spent
  )
  SELECT max(budget) FILTER (WHERE child IS NULL) AS budget, sum(spent) AS spent,
    coalesce(sum(spent) FILTER (WHERE by_agent), 0) AS delegated
  FROM counted`;

const WITH_BELOW = `
  WITH RECURSIVE below AS (
    SELECT id AS top, id, 0 AS depth FROM unnest($2::uuid[]) AS id
    UNION ALL
    SELECT top, c.id, depth + 1 FROM below JOIN app_conversations c ON c.parent_conversation_id = below.id
    WHERE c.user_id = $1 AND depth < 100)
  SELECT top, array_agg(below.id) AS ids, sum((f.metrics ->> 'accumulated_cost')::float8) AS cost
  FROM below LEFT JOIN followed_conversations f ON f.id = below.id AND f.user_id = $1 GROUP BY top`;

/** `spent`: by all, with what is granted; `delegated`: of that, by what its agent has started. */
interface Spending {
  /** Null: there is no limit. */
  budget: number | null;
  spent: number;
  delegated: number;
}

/** A conversation that has begun or ended to work, and whose pull request is followed. */
export interface ChangedWork {
  id: string;
  ended: boolean;
  seenAt: Date;
  /** The `attempt` of the row in `followed_pull_requests`. */
  attempt: number;
}

/** Selects work that has begun or ended. An end counts after a second, as the log may be about to say more. */
const CHANGED_WORK = `
  SELECT p.conversation_id AS id, p.idle_since IS NULL AS ended, p.attempt, f.updated_at AS "seenAt"
  FROM followed_pull_requests p JOIN followed_conversations f ON f.id = p.conversation_id
  WHERE p.next_look_at IS NOT NULL AND CASE WHEN p.idle_since IS NULL
    THEN f.execution_status IN ('finished', 'error', 'stuck') AND f.updated_at < $1::timestamptz - interval '1 second'
      AND NOT EXISTS (SELECT FROM pending_messages m WHERE m.conversation_id = f.id)
    ELSE f.execution_status = 'running' END`;

type Reader = Pick<Caller, 'id' | 'repositories'>;

/** Sorts before every row. */
const FIRST_PAGE = { at: 'infinity', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };

/** Reads each list with one statement. */
@Injectable()
export class ConversationQueries {
  constructor(private readonly dataSource: DataSource) {}

  /** Newest first. Throws InvalidInputError for a page id that is not of this list. */
  async search(
    { id: userId, repositories }: Reader,
    filter: ConversationFilter,
    { limit, pageId }: { limit: number; pageId?: string },
  ): Promise<Page<ConversationRow>> {
    const after = parsePageId('app-conversations', pageId, parseTimeCursor) ?? FIRST_PAGE;
    const place = [after.at, after.id, limit + 1];
    const { owner = 'any' } = filter;
    const rows =
      isEmpty(filter) && owner !== 'others' && repositories === null
        ? await UNFILTERED[owner].run(this.dataSource, [userId, ...place])
        : // Unnamed: a plan for any filter reads all rows of the user.
          await this.dataSource.query<(ConversationRow & Measured)[]>(
            (repositories === null ? SEARCHES : SEARCHES_WITHIN)[owner],
            [userId, ...filterValues(filter), ...place, ...(repositories === null ? [] : [repositories])],
          );
    return toPage('app-conversations', rows, limit, cursor, rows[0]?.found);
  }

  async count({ id: userId, repositories }: Reader, filter: ConversationFilter): Promise<number> {
    const listed = LISTED[filter.owner ?? 'any'];
    const [condition, ...within] =
      repositories === null ? [listed] : [`${listed} AND ${isOfKey('c', '$14')}`, repositories];
    const values = [userId, ...filterValues(filter), ...within];
    const [row] = await this.dataSource.query<{ count: number }[]>(count(condition), values);
    return row?.count ?? 0;
  }

  /** Leaves out what the reader may not read. Throws InvalidInputError when they are larger than a page. */
  async findAll(
    { id, isAdmin, repositories }: Caller,
    ids: readonly string[],
  ): Promise<Map<string, ConversationRow>> {
    const rows = await FIND_READABLE.run(this.dataSource, [id, ids, isAdmin, repositories]);
    requireAll(rows, rows[0]?.found ?? 0, 'ids');
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** Finds a conversation by the id that a client gives. @throws DomainError not_found */
  async get(userId: string, givenId: string): Promise<ConversationRow> {
    const id = parseHexId(givenId);
    const row = id === null ? null : await this.find(userId, id);
    if (row === null) {
      throw unknownConversation();
    }
    return row;
  }

  async find(userId: string, id: string): Promise<ConversationRow | null> {
    const [row = null] = await FIND.run(this.dataSource, [userId, [id]]);
    return row;
  }

  /** Those that it is below, its parent first. */
  async above(userId: string, id: string, manager?: EntityManager): Promise<string[]> {
    const rows = await (manager ?? this.dataSource).query<{ id: string }[]>(ABOVE, [userId, id]);
    return rows.map((row) => row.id);
  }

  async changedWork(now: Date): Promise<ChangedWork[]> {
    return this.dataSource.query<ChangedWork[]>(CHANGED_WORK, [now]);
  }

  /** Amounts are in USD. `resumed` is a conversation below it that has ended and goes on. */
  async spending(
    userId: string,
    id: string,
    { manager, resumed = null }: { manager?: EntityManager; resumed?: string | null } = {},
  ): Promise<Spending> {
    const [row] = await (manager ?? this.dataSource).query<Spending[]>(SPENDING, [userId, id, resumed]);
    return row ?? { budget: null, spent: 0, delegated: 0 };
  }

  /** Returns each conversation with all below it, and what these have cost in USD so far; null when nothing is known. */
  async withBelow(
    userId: string,
    ids: readonly string[],
    manager: Pick<EntityManager, 'query'> = this.dataSource,
  ): Promise<{ top: string; ids: string[]; cost: number | null }[]> {
    return manager.query(WITH_BELOW, [userId, ids]);
  }

  async sandboxesToResume(hostId: string): Promise<string[]> {
    const rows = await this.dataSource.query<{ id: string }[]>(FIND_SANDBOXES_TO_RESUME, [hostId]);
    return rows.map(({ id }) => id);
  }

  /** The last used conversation first. */
  async toResume(sandboxId: string): Promise<ResumableConversation[]> {
    return this.dataSource.query<ResumableConversation[]>(FIND_TO_RESUME, [sandboxId]);
  }
}

function cursor({ id, created_at_text: at }: ConversationRow): string {
  return formatTimeCursor({ at, id });
}

function isEmpty({ withSubConversations, ...filter }: ConversationFilter): boolean {
  return (
    !withSubConversations &&
    Object.values({ ...filter, owner: undefined }).every((value) => value === undefined)
  );
}

function filterValues(filter: ConversationFilter): unknown[] {
  const { titleContains: title } = filter;
  return [
    title === undefined ? null : `%${title.replace(/[\\%_]/g, String.raw`\$&`)}%`,
    filter.createdFrom ?? null,
    filter.createdBefore ?? null,
    filter.updatedFrom ?? null,
    filter.updatedBefore ?? null,
    filter.sandboxId ?? null,
    filter.withSubConversations,
    filter.tags === undefined ? null : JSON.stringify(filter.tags),
    filter.repository ?? null,
    filter.provider ?? null,
    filter.automationId ?? null,
    filter.state ?? null,
  ];
}
