import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import { endAtBytes, type Measured } from '@slipway/database/page-bytes.js';
import { isShownRunning, type SandboxStatus } from '../sandboxes/sandbox-status.js';
import { conversationColumns, JOINED_TABLES } from './conversation.queries.js';
import { type ConversationRow, LARGE } from './conversation-row.js';

const COST = `coalesce((f.metrics ->> 'accumulated_cost')::float8, 0)`;

/** By the names of the peer; the newest of equals first. */
const ORDERS = {
  created_at: 'c.created_at',
  updated_at: 'c.updated_at',
  llm_model: "coalesce(c.llm_model, '')",
  accumulated_cost: COST,
  title: "coalesce(c.title, '')",
};

export const CONVERSATION_ORDERS = [
  'created_at',
  'updated_at',
  'llm_model',
  'accumulated_cost',
  'title',
] as const;
export const DIRECTIONS = ['desc', 'asc'] as const;
/** Days. */
export const TIME_WINDOWS = { all: null, '7d': 7, '30d': 30, '90d': 90 } as const;

export interface OrganizationSearch {
  /** In the title, or the whole id of the sandbox; ignores case. */
  text: string | null;
  /** Users who are found by the same text. */
  owners: readonly string[];
  statuses: readonly ConversationStatus[] | null;
  sandboxStatus: SandboxStatus | null;
  changedWithinDays: number | null;
  withSubConversations: boolean;
  orderBy: (typeof CONVERSATION_ORDERS)[number];
  direction: (typeof DIRECTIONS)[number];
  offset: number;
  limit: number;
}

/** As clients see it: see `toWireStatus`. */
const SANDBOX_STATUS = `CASE
  WHEN s.status IS NULL OR s.status = 'DELETING' THEN 'MISSING'
  WHEN s.status = 'PAUSING' THEN CASE WHEN s.address IS NULL THEN 'STARTING' ELSE 'RUNNING' END
  ELSE s.status END`;

const FILTER_OF_ROW = `
  ($1::text IS NULL OR c.title ILIKE $1 OR lower(c.sandbox_id) = lower($2) OR c.user_id = ANY ($3::uuid[]))
  AND ($4::int IS NULL OR c.updated_at > now() - make_interval(days => $4))
  AND ($5::boolean OR c.parent_conversation_id IS NULL)`;

const FILTER = `${FILTER_OF_ROW}
  AND ($6::text[] IS NULL OR f.execution_status = ANY ($6) AND ${isShownRunning('s')})
  AND ($7::text IS NULL OR ${SANDBOX_STATUS} = $7)`;

function search(order: string): string {
  return endAtBytes(
    `SELECT ${conversationColumns()}, '{}'::uuid[] AS sub_conversation_ids FROM app_conversations c ${JOINED_TABLES}
     WHERE ${FILTER} ORDER BY ${order}, c.created_at DESC, c.id DESC OFFSET $8 LIMIT $9`,
    LARGE,
  );
}

const COUNT = `SELECT count(*)::int AS total FROM app_conversations c ${JOINED_TABLES} WHERE ${FILTER}`;
const COUNT_ROWS = `SELECT count(*)::int AS total FROM app_conversations c WHERE ${FILTER_OF_ROW}`;

/** All amounts are of conversations that are kept. */
export interface OrganizationStats {
  active_conversations: number;
  running_runtimes: number;
  completed_24h: number;
  completed_7d: number;
  completed_30d: number;
  total_cost: number;
  total_prompt_tokens: number;
  total_completion_tokens: number;
  total_tokens: number;
}

function completed(days: number): string {
  return `count(*) FILTER (WHERE f.execution_status = 'finished' AND f.updated_at > now() - interval '${days} days')::int`;
}

function tokens(kind: 'prompt' | 'completion'): string {
  return `coalesce(sum((f.metrics -> 'accumulated_token_usage' ->> '${kind}_tokens')::float8), 0)`;
}

const STATS = `
  SELECT count(*) FILTER (WHERE f.execution_status = 'running' AND ${isShownRunning('s')})::int AS active_conversations,
    count(DISTINCT s.id) FILTER (WHERE ${isShownRunning('s')})::int AS running_runtimes,
    ${completed(1)} AS completed_24h, ${completed(7)} AS completed_7d, ${completed(30)} AS completed_30d,
    sum(${COST}) AS total_cost, ${tokens('prompt')} AS total_prompt_tokens,
    ${tokens('completion')} AS total_completion_tokens, ${tokens('prompt')} + ${tokens('completion')} AS total_tokens
  FROM app_conversations c ${JOINED_TABLES}`;

/** Conversations of all users, for administrators. */
@Injectable()
export class OrganizationConversationQueries {
  constructor(private readonly dataSource: DataSource) {}

  /** A page of 4 MiB ends earlier. */
  async search(asked: OrganizationSearch): Promise<{ rows: ConversationRow[]; total: number }> {
    const { text, owners, orderBy, direction, offset, limit } = asked;
    const ofRow = [
      text === null ? null : `%${text.replace(/[\\%_]/g, String.raw`\$&`)}%`,
      text,
      owners,
      asked.changedWithinDays,
      asked.withSubConversations,
    ];
    const ofState = [asked.statuses, asked.sandboxStatus];
    const filter = [...ofRow, ...ofState];
    const counting = ofState.some((each) => each !== null)
      ? this.dataSource.query<{ total: number }[]>(COUNT, filter)
      : this.dataSource.query<{ total: number }[]>(COUNT_ROWS, ofRow);
    const order = `${ORDERS[orderBy]} ${direction === 'asc' ? 'ASC' : 'DESC'}`;
    const [[counted], rows] = await Promise.all([
      counting,
      this.dataSource.query<(ConversationRow & Measured)[]>(search(order), [...filter, offset, limit]),
    ]);
    return { rows, total: counted?.total ?? 0 };
  }

  async stats(): Promise<OrganizationStats> {
    const [stats] = await this.dataSource.query<[OrganizationStats]>(STATS);
    return { ...stats, total_cost: stats.total_cost ?? 0 };
  }
}
