import type { Client } from 'pg';
import { encodePageId } from '@slipway/api/pagination/page.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../src/organizations/installation-organization.js';
import { FEW, RARE } from './growth-rows.js';

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

interface Expected {
  /** Member with the rows; a body that is a list, or a number, has none. */
  member?: string;
  /** The number of rows at both sizes. */
  rows?: number;
  /** It counts what grows, so its time does too. */
  counts?: true;
}

export interface Listing extends Expected {
  what: string;
  by: 'many' | 'few' | 'admin';
  path: (places: GrowthPlaces) => string;
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
    `SELECT md5('conversation 1')::uuid AS log, md5('endpoint of ' || $1)::uuid AS endpoint, now() - interval '2 hours' AS earlier`,
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
const after = (list: string, ...cursor: string[]): string =>
  `&page_id=${encodePageId(list, cursor.join(' '))}`;
/** Rows at both sizes; without a number there may be any. */
const items = (rows?: number): Expected => ({ member: 'items', ...(rows !== undefined && { rows }) });
const listingOf =
  (by: Listing['by']) =>
  (what: string, path: string | Listing['path'], expected: Expected = {}): Listing => ({
    what,
    by,
    path: typeof path === 'string' ? () => path : path,
    ...expected,
  });
const asMany = listingOf('many');
const asFew = listingOf('few');
const asAdmin = listingOf('admin');

/** Every listing whose rows grow with users and conversations, by each of its filters, at its beginning and far behind it. */
export const LISTINGS: Listing[] = [
  asMany('conversations', conversations(''), items(LIMIT)),
  asFew('conversations of a user with few, and those that others share', conversations(''), items(LIMIT)),
  asFew(
    'conversations that others share, a page far behind',
    ({ middle }) => conversations(after('app-conversations', middle.conversationAt, middle.id)),
    items(LIMIT),
  ),
  asFew('own conversations of a user with few', conversations('&owner__eq=me'), items(FEW)),
  asAdmin(
    'conversations of all, for an administrator',
    `/api/organizations/${INSTALLATION_ORGANIZATION_ID}/conversations?per_page=${LIMIT}`,
    { ...items(LIMIT), counts: true },
  ),
  asMany(
    'conversations, a page far behind',
    ({ middle }) => conversations(after('app-conversations', middle.conversationAt, middle.id)),
    items(LIMIT),
  ),
  asMany(
    'conversations with sub-conversations',
    conversations('&include_sub_conversations=true'),
    items(LIMIT),
  ),
  asMany('conversations by a word of few titles', conversations('&title__contains=invoices'), items(RARE)),
  asMany('conversations by a word of many titles', conversations('&title__contains=parser'), items(LIMIT)),
  asMany('conversations by a word of no title', conversations('&title__contains=zebra'), items(0)),
  asMany(
    'conversations created before',
    ({ middle }) => conversations(`&created_at__lt=${middle.conversationAt}`),
    items(LIMIT),
  ),
  asMany(
    'conversations created since',
    ({ middle }) => conversations(`&created_at__gte=${middle.conversationAt}`),
    items(LIMIT),
  ),
  asMany(
    'conversations changed before',
    ({ middle }) => conversations(`&updated_at__lt=${middle.changedAt}`),
    items(LIMIT),
  ),
  asMany(
    'conversations changed since, few',
    ({ twoHoursAgo }) => conversations(`&updated_at__gte=${twoHoursAgo}`),
    items(RARE),
  ),
  asMany(
    'conversations by sandbox',
    ({ middle }) => conversations(`&sandbox_id__eq=${middle.sandbox}`),
    items(LIMIT),
  ),
  asMany('conversations by a tag of many', conversations('&tag=job:nightly'), items(LIMIT)),
  asMany('conversations by a tag of few', conversations('&tag=job:release'), items(RARE)),
  asMany('conversations by a tag of none', conversations('&tag=job:weekly'), items(0)),
  asMany(
    'conversations by id',
    ({ middle }) => `/api/v1/app-conversations?ids=${middle.id.replaceAll('-', '')}`,
  ),
  asMany(
    'start tasks by id',
    ({ middle }) => `/api/v1/app-conversations/start-tasks?ids=${middle.startTask.replaceAll('-', '')}`,
  ),
  asMany('sandboxes by id', ({ middle }) => `/api/v1/sandboxes?id=${middle.sandbox}`),
  asMany('conversations of v0', `/api/conversations?limit=${LIMIT}`, { member: 'results', rows: LIMIT }),
  asFew('count of own conversations of a user with few', '/api/v1/app-conversations/count?owner__eq=me'),
  asFew('count of conversations that others share', '/api/v1/app-conversations/count', { counts: true }),
  asMany(
    'count of conversations by a word of few titles',
    '/api/v1/app-conversations/count?title__contains=invoices',
  ),
  asMany('count of conversations by a tag of few', '/api/v1/app-conversations/count?tag=job:release'),
  asMany('count of conversations', '/api/v1/app-conversations/count', { counts: true }),
  asMany('start tasks, newest', startTasks('&sort_order=CREATED_AT_DESC'), items(LIMIT)),
  asMany('start tasks, oldest', startTasks('&sort_order=CREATED_AT'), items(LIMIT)),
  asMany('start tasks, last changed', startTasks('&sort_order=UPDATED_AT_DESC'), items(LIMIT)),
  asMany('start tasks, longest unchanged', startTasks('&sort_order=UPDATED_AT'), items(LIMIT)),
  asMany(
    'start tasks, a page far behind',
    ({ middle }) =>
      startTasks(
        `&sort_order=CREATED_AT_DESC${after('start-tasks', middle.conversationAt, middle.startTask)}`,
      ),
    items(LIMIT),
  ),
  asMany(
    'start tasks created since',
    ({ middle }) => startTasks(`&created_at__gte=${middle.conversationAt}`),
    items(LIMIT),
  ),
  asMany(
    'start task of a conversation',
    ({ middle }) => startTasks(`&conversation_id__eq=${middle.id.replaceAll('-', '')}`),
    items(1),
  ),
  asFew('start tasks of a user with few', startTasks('&sort_order=UPDATED_AT_DESC'), items(5)),
  asMany('count of start tasks', '/api/v1/app-conversations/start-tasks/count', { counts: true }),
  asFew('events', (places) => events(places, ''), items(LIMIT)),
  asFew('events, newest', (places) => events(places, '&sort_order=TIMESTAMP_DESC'), items(LIMIT)),
  asFew(
    'events, a page far behind',
    (places) => events(places, after(`events ${places.longLog}`, '800')),
    items(LIMIT),
  ),
  asFew('events by kind', (places) => events(places, '&kind__eq=MessageEvent'), items(LIMIT)),
  asFew('count of events', ({ longLog }) => `/api/v1/conversation/${longLog}/events/count`),
  asFew(
    'count of events by kind',
    ({ longLog }) => `/api/v1/conversation/${longLog}/events/count?kind__eq=MessageEvent`,
  ),
  asMany('sandboxes', '/api/v1/sandboxes/search?limit=5', items(5)),
  asFew('sandboxes of a user with few', '/api/v1/sandboxes/search?limit=5', items(1)),
  asFew('secrets', '/api/v1/secrets/search?limit=20', items(5)),
  asFew('webhook endpoints', '/api/v1/webhook-endpoints'),
  asMany('deliveries', (places) => deliveries(places, ''), items(LIMIT)),
  asMany('deliveries that failed, few', (places) => deliveries(places, '&status=failed'), items(RARE)),
  asMany(
    'deliveries, a page far behind',
    (places) =>
      deliveries(
        places,
        after(`deliveries ${places.endpoint}`, places.middle.deliveryAt, places.middle.delivery),
      ),
    items(LIMIT),
  ),
  asFew('keys', '/api/v1/api-keys'),
  asAdmin('keys of a user, for an administrator', ({ few }) => `/api/v1/api-keys?user_id=${few}`),
  asAdmin('users', '/api/v1/users?limit=5', items(5)),
  asAdmin(
    'users, a page far behind',
    ({ middleEmail }) => `/api/v1/users?limit=3${after('users', middleEmail)}`,
    items(3),
  ),
  asAdmin('users by address', ({ middleEmail }) => `/api/v1/users?email__eq=${middleEmail}`, items(1)),
  asAdmin('audit', audit(''), items(LIMIT)),
  asAdmin(
    'audit, a page far behind',
    ({ middle }) => audit(after('audit', middle.entryAt, middle.entry)),
    items(LIMIT),
  ),
  asAdmin('audit by owner', ({ many }) => audit(`&owner_user_id=${many}`), items(LIMIT)),
  asAdmin('audit by actor, few', ({ few }) => audit(`&actor_user_id=${few}`), items(5)),
  asAdmin('audit by a rare action', audit('&action=user.create'), items(RARE)),
  asAdmin('audit by type', audit('&resource_type=secret'), items(LIMIT)),
  asAdmin('audit by a rare name', audit('&resource_id=RARE'), items(RARE)),
  asAdmin('audit by request', audit('&request_id=request-500'), items(1)),
  asFew('git hosts of a user (rows of suggested tasks)', '/api/settings'),
];

function micro(column: string): string {
  return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}
