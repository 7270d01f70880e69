import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { decodePageId, type Page, toPage } from '../../common/pagination/page.js';
import { formatTimeCursor, parseTimeCursor } from '../../common/pagination/time-cursor.js';
import { NamedStatement } from '../../database/named-statement.js';
import { CONVERSATION_COLUMNS, CONVERSATION_TABLES, type ConversationRow } from './conversation-row.js';

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
export class ConversationsReader {
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
