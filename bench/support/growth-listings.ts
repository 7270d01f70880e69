import type { Client } from 'pg';
import { RARE } from './growth-rows.js';

/** What addresses of listings need to know of a database. */
export interface GrowthPlaces {
  many: string;
  few: string;
  /** One in the middle of those of the user with many, by the clock of its database. */
  middle: Record<
    | 'id'
    | 'conversationAt'
    | 'changedAt'
    | 'sandbox'
    | 'startTask'
    | 'delivery'
    | 'deliveryAt'
    | 'entry'
    | 'entryAt',
    string
  >;
  middleEmail: string;
  /** Has as many events at any size. */
  longLog: string;
  endpoint: string;
  twoHoursAgo: string;
}

export interface Listing {
  what: string;
  by: 'many' | 'few' | 'admin';
  path: (places: GrowthPlaces) => string;
  /** Member with the rows; a body that is a list, or a number, has none. */
  member?: string;
  /** At both sizes. */
  rows?: number;
  /** It counts what grows, so its time does too. */
  counts?: true;
}

const LIMIT = 20;

const MIDDLE = `
  SELECT c.id, ${micro('c.created_at')} AS "conversationAt", ${micro('c.updated_at')} AS "changedAt", c.sandbox_id AS sandbox,
    t.id AS "startTask", d.id AS delivery, ${micro('d.created_at')} AS "deliveryAt", e.id AS entry,
    ${micro('e.at')} AS "entryAt"
  FROM growth_numbers(($1::int + $2::int) / 2, ($1::int + $2::int) / 2, $2::int, 0, $3::uuid, $3::uuid) AS g
  JOIN app_conversations c ON c.id = g.id
  JOIN app_conversation_start_tasks t ON t.app_conversation_id = g.id
  JOIN webhook_deliveries d ON d.id = md5('delivery ' || g.n)::uuid
  JOIN audit_entries e ON e.request_id = 'request-' || g.n`;

/** @param spread conversations of the users with few */
export async function findPlaces(
  database: Client,
  {
    many,
    few,
    spread,
    total,
    users,
  }: { many: string; few: string; spread: number; total: number; users: number },
): Promise<GrowthPlaces> {
  const { rows } = await database.query<GrowthPlaces['middle']>(MIDDLE, [spread, total, many]);
  const ids = await database.query<{ log: string; endpoint: string; earlier: Date }>(
    `SELECT md5('conversation 1') AS log, md5('endpoint of ' || $1)::uuid AS endpoint, now() - interval '2 hours' AS earlier`,
    [many],
  );
  const [middle] = rows;
  const [found] = ids.rows;
  if (!middle || !found) {
    throw new Error('the rows in the middle are missing');
  }
  return {
    many,
    few,
    middle,
    middleEmail: `user-${String(Math.floor(users / 2)).padStart(7, '0')}@example.com`,
    longLog: found.log,
    endpoint: found.endpoint,
    twoHoursAgo: found.earlier.toISOString(),
  };
}

const conversations = (query: string): string => `/api/v1/app-conversations/search?limit=${LIMIT}${query}`;
const startTasks = (query: string): string =>
  `/api/v1/app-conversations/start-tasks/search?limit=${LIMIT}${query}`;
const events = (places: GrowthPlaces, query: string): string =>
  `/api/v1/conversation/${places.longLog}/events/search?limit=${LIMIT}${query}`;
const deliveries = (places: GrowthPlaces, query: string): string =>
  `/api/v1/webhook-endpoints/${places.endpoint}/deliveries?limit=${LIMIT}${query}`;
const audit = (query: string): string => `/api/v1/audit?limit=${LIMIT}${query}`;
const after = (...cursor: string[]): string =>
  `&page_id=${Buffer.from(cursor.join(' ')).toString('base64url')}`;
const items = { member: 'items', rows: LIMIT } as const;

/** Every listing whose rows grow with users and conversations, by each of its filters, at its beginning and far behind it. */
export const LISTINGS: Listing[] = [
  { what: 'conversations', by: 'many', path: () => conversations(''), ...items },
  { what: 'conversations of a user with few', by: 'few', path: () => conversations(''), member: 'items' },
  {
    what: 'conversations, a page far behind',
    by: 'many',
    path: ({ middle }) => conversations(after(middle.conversationAt, middle.id)),
    ...items,
  },
  {
    what: 'conversations with sub-conversations',
    by: 'many',
    path: () => conversations('&include_sub_conversations=true'),
    ...items,
  },
  {
    what: 'conversations by a word of few titles',
    by: 'many',
    path: () => conversations('&title__contains=invoices'),
    member: 'items',
    rows: RARE,
  },
  {
    what: 'conversations by a word of many titles',
    by: 'many',
    path: () => conversations('&title__contains=parser'),
    ...items,
  },
  {
    what: 'conversations by a word of no title',
    by: 'many',
    path: () => conversations('&title__contains=zebra'),
    member: 'items',
    rows: 0,
  },
  {
    what: 'conversations created before',
    by: 'many',
    path: ({ middle }) => conversations(`&created_at__lt=${middle.conversationAt}`),
    ...items,
  },
  {
    what: 'conversations created since',
    by: 'many',
    path: ({ middle }) => conversations(`&created_at__gte=${middle.conversationAt}`),
    ...items,
  },
  {
    what: 'conversations changed before',
    by: 'many',
    path: ({ middle }) => conversations(`&updated_at__lt=${middle.changedAt}`),
    ...items,
  },
  {
    what: 'conversations changed since, few',
    by: 'many',
    path: ({ twoHoursAgo }) => conversations(`&updated_at__gte=${twoHoursAgo}`),
    member: 'items',
    rows: RARE,
  },
  {
    what: 'conversations by sandbox',
    by: 'many',
    path: ({ middle }) => conversations(`&sandbox_id__eq=${middle.sandbox}`),
    ...items,
  },
  {
    what: 'conversations by a tag of many',
    by: 'many',
    path: () => conversations('&tag=job:nightly'),
    ...items,
  },
  {
    what: 'conversations by a tag of few',
    by: 'many',
    path: () => conversations('&tag=job:release'),
    member: 'items',
    rows: RARE,
  },
  {
    what: 'conversations by a tag of none',
    by: 'many',
    path: () => conversations('&tag=job:weekly'),
    member: 'items',
    rows: 0,
  },
  {
    what: 'conversations by id',
    by: 'many',
    path: ({ middle }) => `/api/v1/app-conversations?ids=${middle.id.replaceAll('-', '')}`,
  },
  {
    what: 'start tasks by id',
    by: 'many',
    path: ({ middle }) => `/api/v1/app-conversations/start-tasks?ids=${middle.startTask.replaceAll('-', '')}`,
  },
  {
    what: 'sandboxes by id',
    by: 'many',
    path: ({ middle }) => `/api/v1/sandboxes?id=${middle.sandbox}`,
  },
  {
    what: 'conversations of v0',
    by: 'many',
    path: () => `/api/conversations?limit=${LIMIT}`,
    member: 'results',
    rows: LIMIT,
  },
  {
    what: 'count of conversations of a user with few',
    by: 'few',
    path: () => '/api/v1/app-conversations/count',
  },
  {
    what: 'count of conversations by a word of few titles',
    by: 'many',
    path: () => '/api/v1/app-conversations/count?title__contains=invoices',
  },
  {
    what: 'count of conversations by a tag of few',
    by: 'many',
    path: () => '/api/v1/app-conversations/count?tag=job:release',
  },
  { what: 'count of conversations', by: 'many', path: () => '/api/v1/app-conversations/count', counts: true },
  {
    what: 'start tasks, newest',
    by: 'many',
    path: () => startTasks('&sort_order=CREATED_AT_DESC'),
    ...items,
  },
  { what: 'start tasks, oldest', by: 'many', path: () => startTasks('&sort_order=CREATED_AT'), ...items },
  {
    what: 'start tasks, last changed',
    by: 'many',
    path: () => startTasks('&sort_order=UPDATED_AT_DESC'),
    ...items,
  },
  {
    what: 'start tasks, longest unchanged',
    by: 'many',
    path: () => startTasks('&sort_order=UPDATED_AT'),
    ...items,
  },
  {
    what: 'start tasks, a page far behind',
    by: 'many',
    path: ({ middle }) =>
      startTasks(`&sort_order=CREATED_AT_DESC${after(middle.conversationAt, middle.startTask)}`),
    ...items,
  },
  {
    what: 'start tasks created since',
    by: 'many',
    path: ({ middle }) => startTasks(`&created_at__gte=${middle.conversationAt}`),
    ...items,
  },
  {
    what: 'start task of a conversation',
    by: 'many',
    path: ({ middle }) => startTasks(`&conversation_id__eq=${middle.id.replaceAll('-', '')}`),
    member: 'items',
    rows: 1,
  },
  {
    what: 'start tasks of a user with few',
    by: 'few',
    path: () => startTasks('&sort_order=UPDATED_AT_DESC'),
    member: 'items',
    rows: 5,
  },
  {
    what: 'count of start tasks',
    by: 'many',
    path: () => '/api/v1/app-conversations/start-tasks/count',
    counts: true,
  },
  { what: 'events', by: 'few', path: (places) => events(places, ''), ...items },
  {
    what: 'events, newest',
    by: 'few',
    path: (places) => events(places, '&sort_order=TIMESTAMP_DESC'),
    ...items,
  },
  { what: 'events, a page far behind', by: 'few', path: (places) => events(places, after('800')), ...items },
  { what: 'events by kind', by: 'few', path: (places) => events(places, '&kind__eq=MessageEvent'), ...items },
  {
    what: 'count of events',
    by: 'few',
    path: ({ longLog }) => `/api/v1/conversation/${longLog}/events/count`,
  },
  {
    what: 'count of events by kind',
    by: 'few',
    path: ({ longLog }) => `/api/v1/conversation/${longLog}/events/count?kind__eq=MessageEvent`,
  },
  { what: 'sandboxes', by: 'many', path: () => '/api/v1/sandboxes/search?limit=5', member: 'items', rows: 5 },
  {
    what: 'sandboxes of a user with few',
    by: 'few',
    path: () => '/api/v1/sandboxes/search?limit=5',
    member: 'items',
    rows: 1,
  },
  { what: 'secrets', by: 'few', path: () => '/api/v1/secrets/search?limit=20', member: 'items', rows: 5 },
  { what: 'webhook endpoints', by: 'few', path: () => '/api/v1/webhook-endpoints' },
  { what: 'deliveries', by: 'many', path: (places) => deliveries(places, ''), ...items },
  {
    what: 'deliveries that failed, few',
    by: 'many',
    path: (places) => deliveries(places, '&status=failed'),
    member: 'items',
    rows: RARE,
  },
  {
    what: 'deliveries, a page far behind',
    by: 'many',
    path: (places) => deliveries(places, after(places.middle.deliveryAt, places.middle.delivery)),
    ...items,
  },
  { what: 'keys', by: 'few', path: () => '/api/v1/api-keys' },
  {
    what: 'keys of a user, for an administrator',
    by: 'admin',
    path: ({ few }) => `/api/v1/api-keys?user_id=${few}`,
  },
  { what: 'users', by: 'admin', path: () => '/api/v1/users?limit=5', member: 'items', rows: 5 },
  {
    what: 'users, a page far behind',
    by: 'admin',
    path: ({ middleEmail }) => `/api/v1/users?limit=3${after(middleEmail)}`,
    member: 'items',
    rows: 3,
  },
  {
    what: 'users by address',
    by: 'admin',
    path: ({ middleEmail }) => `/api/v1/users?email__eq=${middleEmail}`,
    member: 'items',
    rows: 1,
  },
  { what: 'audit', by: 'admin', path: () => audit(''), ...items },
  {
    what: 'audit, a page far behind',
    by: 'admin',
    path: ({ middle }) => audit(after(middle.entryAt, middle.entry)),
    ...items,
  },
  { what: 'audit by owner', by: 'admin', path: ({ many }) => audit(`&owner_user_id=${many}`), ...items },
  {
    what: 'audit by actor, few',
    by: 'admin',
    path: ({ few }) => audit(`&actor_user_id=${few}`),
    member: 'items',
    rows: 5,
  },
  {
    what: 'audit by a rare action',
    by: 'admin',
    path: () => audit('&action=user.create'),
    member: 'items',
    rows: RARE,
  },
  { what: 'audit by type', by: 'admin', path: () => audit('&resource_type=secret'), ...items },
  {
    what: 'audit by a rare name',
    by: 'admin',
    path: () => audit('&resource_id=RARE'),
    member: 'items',
    rows: RARE,
  },
  {
    what: 'audit by request',
    by: 'admin',
    path: () => audit('&request_id=request-500'),
    member: 'items',
    rows: 1,
  },
  { what: 'git hosts of a user (rows of suggested tasks)', by: 'few', path: () => '/api/settings' },
];

function micro(column: string): string {
  return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}
