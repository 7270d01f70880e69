import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import type { ConversationStatus, MetricsSnapshot } from '../../agent-protocol/conversation.js';
import {
  decodePageId,
  formatTimeCursor,
  type Page,
  parseTimeCursor,
  toPage,
} from '../../common/pagination/page.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { ProviderType } from '../../git-providers/git-provider.js';
import { ConversationLogs } from '../events/conversation-logs.js';
import type { SandboxRowStatus } from '../sandboxes/sandbox.entity.js';
import { initialTitle } from './conversation.entity.js';
import type { StartTask } from './start-task.entity.js';

/** A conversation with what is known of its sandbox and of its other half in the agent server. */
export interface ConversationRow {
  id: string;
  user_id: string;
  sandbox_id: string;
  selected_repository: string | null;
  selected_branch: string | null;
  git_provider: ProviderType | null;
  title: string | null;
  trigger: string | null;
  pr_number: number[];
  llm_model: string | null;
  parent_conversation_id: string | null;
  public: boolean | null;
  tags: Record<string, string>;
  working_dir: string;
  sandbox_generation: number;
  created_at: Date;
  updated_at: Date;
  /** `created_at` with microseconds, for cursors. */
  created_at_text: string;
  /** Null when there is no row of the sandbox. */
  sandbox_status: SandboxRowStatus | null;
  /** Encrypted, and only while the sandbox is RUNNING. */
  session_key: string | null;
  /** Of the sandbox; null unless it is RUNNING. */
  address: string | null;
  execution_status: ConversationStatus | null;
  metrics: MetricsSnapshot | null;
  sub_conversation_ids: string[];
}

/** Columns of a `ConversationRow` but for `sub_conversation_ids`. */
const CONVERSATION_COLUMNS = `
  c.id, c.user_id, c.sandbox_id, c.selected_repository, c.selected_branch, c.git_provider, c.title, c.trigger,
  c.pr_number, c.llm_model, c.parent_conversation_id, c.public, c.tags, c.working_dir, c.sandbox_generation,
  c.created_at, c.updated_at,
  to_char(c.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at_text,
  s.status AS sandbox_status,
  CASE WHEN s.status = 'RUNNING' THEN s.session_key END AS session_key,
  CASE WHEN s.status = 'RUNNING' THEN s.address END AS address,
  f.execution_status, f.metrics`;

/** A sandbox counts only where it is the same user's. */
const CONVERSATION_TABLES = `
  app_conversations c
  LEFT JOIN sandboxes s ON s.id = c.sandbox_id AND s.user_id = c.user_id
  LEFT JOIN followed_conversations f ON f.id = c.id`;

/** Which conversations are wanted; what is left out does not matter. */
export interface ConversationFilter {
  /** Case does not count, and nothing in it is a pattern. */
  titleContains?: string;
  createdFrom?: Date;
  createdBefore?: Date;
  updatedFrom?: Date;
  updatedBefore?: Date;
  sandboxId?: string;
  /** Those with a parent too. */
  withSubConversations: boolean;
}

/** $1 is the user; the filter takes $2 to $8. */
const FILTER = `
  c.user_id = $1
  AND ($2::text IS NULL OR c.title ILIKE $2)
  AND ($3::timestamptz IS NULL OR c.created_at >= $3)
  AND ($4::timestamptz IS NULL OR c.created_at < $4)
  AND ($5::timestamptz IS NULL OR c.updated_at >= $5)
  AND ($6::timestamptz IS NULL OR c.updated_at < $6)
  AND ($7::text IS NULL OR c.sandbox_id = $7)
  AND ($8::boolean OR c.parent_conversation_id IS NULL)`;

/** Not named: a plan for whichever filters there may be reads all rows of the user. */
const SEARCH = `
  SELECT ${CONVERSATION_COLUMNS}, '{}'::uuid[] AS sub_conversation_ids
  FROM ${CONVERSATION_TABLES}
  WHERE ${FILTER} AND (c.created_at, c.id) < ($9::timestamptz, $10::uuid)
  ORDER BY c.created_at DESC, c.id DESC LIMIT $11`;

const COUNT = `SELECT count(*)::int AS count FROM app_conversations c WHERE ${FILTER}`;

const FIND = new NamedStatement<ConversationRow>(
  'app_conversations_find',
  `SELECT ${CONVERSATION_COLUMNS},
     ARRAY(SELECT sub.id FROM app_conversations sub
           WHERE sub.parent_conversation_id = c.id AND sub.user_id = c.user_id
           ORDER BY sub.created_at, sub.id) AS sub_conversation_ids
   FROM ${CONVERSATION_TABLES}
   WHERE c.user_id = $1 AND c.id = ANY ($2::uuid[])`,
);

/** Sorts before everything that there is. */
const BEGINNING = { at: 'infinity', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };

/** Reads conversations of one user, each list with one statement. */
@Injectable()
export class ConversationQueries {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Newest first. A page id that is none of ours means the first page. */
  async search(
    userId: string,
    filter: ConversationFilter,
    { limit, pageId }: { limit: number; pageId?: string },
  ): Promise<Page<ConversationRow>> {
    const after = parseTimeCursor(decodePageId(pageId)) ?? BEGINNING;
    const rows = await this.dataSource.query<ConversationRow[]>(SEARCH, [
      userId,
      ...filterValues(filter),
      after.at,
      after.id,
      limit + 1,
    ]);
    return toPage(rows, limit, (row) => formatTimeCursor({ at: row.created_at_text, id: row.id }));
  }

  async count(userId: string, filter: ConversationFilter): Promise<number> {
    const [row] = await this.dataSource.query<{ count: number }[]>(COUNT, [userId, ...filterValues(filter)]);
    return row?.count ?? 0;
  }

  /** By id; unknown ones and those of other users are not in it. */
  async findAll(userId: string, ids: readonly string[]): Promise<Map<string, ConversationRow>> {
    const rows = ids.length === 0 ? [] : await FIND.run(this.dataSource, [userId, ids]);
    return new Map(rows.map((row) => [row.id, row]));
  }

  async find(userId: string, id: string): Promise<ConversationRow | null> {
    return (await this.findAll(userId, [id])).get(id) ?? null;
  }
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
  ];
}

const INSERT = `
  INSERT INTO app_conversations
    (id, user_id, sandbox_id, selected_repository, selected_branch, git_provider, title, title_is_users, trigger,
     pr_number, llm_model, parent_conversation_id, public, tags, working_dir)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
  ON CONFLICT (id) DO NOTHING`;

/** The row of a conversation, as its start makes it. */
@Injectable()
export class ConversationRepository {
  constructor(private readonly logs: ConversationLogs) {}

  /** Stores the conversation and opens its log, in the caller's transaction. Repeatable. */
  async insert(
    manager: EntityManager,
    { appConversationId: id, userId, sandboxId, request }: StartTask,
    { model, workingDir }: { model: string; workingDir: string },
  ): Promise<void> {
    await manager.query(INSERT, [
      id,
      userId,
      sandboxId,
      request.selected_repository,
      request.selected_branch,
      request.git_provider,
      request.title ?? initialTitle(id),
      request.title !== null,
      request.trigger,
      request.pr_number,
      model,
      request.parent_conversation_id,
      request.public,
      JSON.stringify(request.tags),
      workingDir,
    ]);
    await this.logs.open(manager, { conversationId: id, userId, sandboxId });
  }

  /** Notes which start of the sandbox knows the conversation's credentials. */
  async setGeneration(manager: EntityManager, id: string, generation: number): Promise<void> {
    await manager.query('UPDATE app_conversations SET sandbox_generation = $2 WHERE id = $1', [
      id,
      generation,
    ]);
  }

  /** Takes back what `insert` did: the start failed after it. */
  async remove(manager: EntityManager, id: string): Promise<void> {
    await manager.query('DELETE FROM app_conversations WHERE id = $1', [id]);
    await this.logs.remove(manager, id);
  }
}
