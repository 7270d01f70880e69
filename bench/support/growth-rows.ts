import { Client } from 'pg';
import type { StartRequest } from '../../src/v1/app-conversations/start-task.entity.js';
import { print } from './report.js';

/** How much there is of everything. Start tasks, deliveries and audit entries are as many as conversations. */
export interface GrowthSize {
  users: number;
  conversations: number;
  events: number;
}

/** Ids of users who read. */
export interface GrowthReaders {
  /** Has all conversations that are not spread over the others. */
  many: string;
  /** Has as few as the others. */
  few: string;
}

/** Conversations, and secrets, of each user but the one with many. */
export const FEW = 5;
/** Rows at any size that no neighbour is like: the oldest of the user with many. */
export const RARE = 20;
/** Events of one conversation, at any size. */
export const LONG_LOG = 1_000;
/** It does not run, so the service leaves these sandboxes alone. */
const ABSENT_HOST = 'absent-host';
/** Numbers inserted at a time. */
const STEP = 200_000;

/** Gives conversations, newest first, to users; those with few get the first ones. Rare ones are the oldest. */
const NUMBERS = `
  CREATE FUNCTION growth_numbers(first int, last int, total int, few_users int, few uuid, many uuid)
  RETURNS TABLE (n int, id uuid, user_id uuid, sandbox_id text, at timestamptz, rare boolean) LANGUAGE sql STABLE AS $$
    SELECT n, md5('conversation ' || n)::uuid,
      CASE WHEN n <= ${FEW} THEN few WHEN n <= few_users * ${FEW} THEN md5('user ' || (n - 1) / ${FEW})::uuid ELSE many END,
      substr(md5(CASE WHEN n <= few_users * ${FEW} THEN 'sandbox of ' || (n - 1) / ${FEW} ELSE 'sandbox ' || n / 100 END), 1, 22),
      now() - interval '1 day' - n * interval '20 seconds', n > total - 50 * ${RARE} AND n % 50 = 0
    FROM generate_series(first, last) AS n
  $$`;

const GIVEN = `growth_numbers($1, $2, $3, $4, $5, $6) AS given`;

const USERS = [
  `INSERT INTO users (id, email) SELECT md5('user ' || n)::uuid, 'user-' || lpad(n::text, 7, '0') || '@example.com'
   FROM generate_series(1, $1::int - 1) AS n`,
  `INSERT INTO api_keys (id, user_id, name, secret_hash) SELECT 'growth' || n, md5('user ' || n)::uuid, 'laptop', decode(md5('key ' || n), 'hex')
   FROM generate_series(1, $1::int - 1) AS n`,
  `INSERT INTO provider_tokens (user_id, provider, token) SELECT md5('user ' || n)::uuid, 'gitlab', repeat(md5('token ' || n), 3)
   FROM generate_series(1, $1::int - 1) AS n`,
];

const OF_ALL_USERS = [
  `INSERT INTO settings (user_id, language, llm_model, agent) SELECT id, 'en', 'openai/large-model', 'CodeActAgent' FROM users`,
  `INSERT INTO custom_secrets (user_id, name, value) SELECT id, 'SECRET_' || k, repeat(md5(id::text || k), 3)
   FROM users CROSS JOIN generate_series(1, ${FEW}) AS k`,
  `INSERT INTO webhook_endpoints (id, user_id, url, events, secret)
   SELECT md5('endpoint of ' || id)::uuid, id, 'https://example.com/hook', '{conversation.finished}', repeat(md5(id::text), 3) FROM users`,
];

/** Stored for a start that a person asked for in the web application. */
const REQUEST = JSON.stringify({
  sandbox_id: null,
  sandbox_spec_id: null,
  conversation_id: null,
  initial_message: {
    role: 'user',
    run: true,
    content: [{ type: 'text', text: 'The build fails since yesterday; please find out why and fix it.' }],
  },
  system_message_suffix: null,
  llm_model: 'openai/large-model',
  selected_branch: 'main',
  git_provider: 'github',
  suggested_task: null,
  title: null,
  trigger: 'gui',
  pr_number: [],
  parent_conversation_id: null,
  agent_type: 'default',
  public: null,
  secrets: null,
  tags: {},
} satisfies Partial<StartRequest>);

const OF_CONVERSATIONS = [
  `INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, generation,
     last_activity_at, created_at, updated_at)
   SELECT DISTINCT ON (sandbox_id) sandbox_id, user_id, 'slipway', 'PAUSED', 'process', '${ABSENT_HOST}',
     repeat(md5(sandbox_id), 3), decode(md5(sandbox_id), 'hex'), 1, at, at, at
   FROM ${GIVEN} ON CONFLICT (id) DO NOTHING`,
  `INSERT INTO app_conversations (id, user_id, sandbox_id, selected_repository, selected_branch, git_provider, title, llm_model,
     working_dir, sandbox_generation, created_at, updated_at, tags, parent_conversation_id, visibility)
   SELECT id, user_id, sandbox_id, 'example/service-' || n % 50, 'main', 'github',
     (ARRAY['Fix', 'Extend', 'Explain', 'Rewrite', 'Test'])[1 + n % 5] || ' the '
       || (ARRAY['parser', 'login page', 'export', 'scheduler', 'cache', 'search'])[1 + n % 6]
       || CASE WHEN rare THEN ' of invoices ' ELSE ' ' END || substr(md5(n::text), 1, 6),
     'openai/large-model', '/workspace/service', 1, at,
     CASE WHEN rare THEN now() - interval '1 hour' ELSE at + interval '10 minutes' END,
     CASE WHEN rare THEN '{"job": "release"}' WHEN n % 2 = 0 THEN '{"job": "nightly"}' ELSE '{}' END::jsonb,
     CASE WHEN n % 20 = 11 THEN md5('conversation ' || n - 1)::uuid END,
     CASE WHEN n % 20 = 13 AND NOT rare THEN 'organization' ELSE 'private' END
   FROM ${GIVEN}`,
  `INSERT INTO app_conversation_start_tasks (id, user_id, status, app_conversation_id, sandbox_id, host_id, request, sandbox_made,
     working_dir, attempt, created_at, updated_at)
   SELECT md5('start ' || n)::uuid, user_id, CASE WHEN n % 100 = 0 THEN 'ERROR' ELSE 'READY' END, id, sandbox_id, '${ABSENT_HOST}',
     '${REQUEST}'::jsonb || jsonb_build_object('selected_repository', 'example/service-' || n % 50),
     true, '/workspace/service', 1, at, at + interval '3 seconds'
   FROM ${GIVEN}`,
  `INSERT INTO audit_entries (at, id, action, outcome, actor_kind, actor_user_id, resource_id, owner_user_id, request_id,
     client_address, details)
   SELECT at, md5('entry ' || n)::uuid,
     CASE WHEN rare THEN 'user.create' WHEN n % 10 = 0 THEN 'secret.update' ELSE 'settings.update' END,
     'done', 'user', user_id, CASE WHEN rare THEN 'RARE' ELSE 'NAME_' || n % 5000 END, user_id, 'request-' || n, '10.0.0.1',
     '{"members": ["language"]}'
   FROM ${GIVEN}`,
  `INSERT INTO webhook_deliveries (id, endpoint_id, event_type, data, status, attempts, created_at, last_attempt_at,
     last_response_status, last_duration_ms)
   SELECT md5('delivery ' || n)::uuid, md5('endpoint of ' || user_id)::uuid, 'conversation.finished',
     json_build_object('conversation_id', id, 'title', 'Fix the parser'), CASE WHEN rare THEN 'failed' ELSE 'delivered' END, 1,
     now() - n * interval '0.3 seconds', now() - n * interval '0.3 seconds', 200, 12
   FROM ${GIVEN}`,
];

const LOGS = `
  INSERT INTO followed_conversations (id, user_id, sandbox_id, execution_status, metrics, event_count, last_event_id, updated_at)
  SELECT id, user_id, sandbox_id, 'finished',
    '{"accumulated_cost": 0.42, "accumulated_token_usage": {"prompt_tokens": 48211, "completion_tokens": 2103}}',
    $7::int, md5('event ' || n || ' ' || $7::int), at + interval '10 minutes'
  FROM ${GIVEN}`;

/** Some 600 bytes each: a short command and what it printed, half of which no other event has. */
const EVENTS = `
  INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
  SELECT id, seq, event_id, kind, at + seq * interval '1 second', json_build_object('id', event_id, 'kind', kind,
    'timestamp', to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US'), 'source', 'agent', 'tool_name', 'terminal', 'observation', json_build_object(
      'exit_code', 0, 'command', 'npm test -- number-' || n, 'content', json_build_array(json_build_object('type', 'text', 'text',
        md5(n || 'a' || seq) || md5(n || 'b' || seq) || md5(n || 'c' || seq) || repeat(' passed', 30)))))
  FROM ${GIVEN} CROSS JOIN LATERAL (
    SELECT seq, md5('event ' || n || ' ' || seq) AS event_id,
      CASE WHEN seq % 10 = 0 THEN 'MessageEvent' WHEN seq % 2 = 0 THEN 'ActionEvent' ELSE 'ObservationEvent' END AS kind
    FROM generate_series($7::int, $8::int) AS seq) AS log`;

/** Fills a database that has the schema and the readers, by two sessions: one inserts events, the other everything else. */
export async function fillDatabase(
  databaseUrl: string,
  { users, conversations, events }: GrowthSize,
  { many, few }: GrowthReaders,
): Promise<void> {
  const startedAt = performance.now();
  const seconds = (): string => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
  const ofEach = Math.round(events / conversations);
  const fewUsers = users - 1;
  const given = (first: number, last: number): unknown[] => [first, last, conversations, fewUsers, few, many];
  const rows = await connect(databaseUrl);
  const log = await connect(databaseUrl);
  try {
    await rows.query(NUMBERS);
    for (const statement of USERS) {
      await rows.query(statement, [fewUsers]);
    }
    for (const statement of OF_ALL_USERS) {
      await rows.query(statement);
    }
    let logging: Promise<unknown> = Promise.resolve();
    for (let first = 1; first <= conversations; first += STEP) {
      const numbers = given(first, Math.min(first + STEP - 1, conversations));
      await Promise.all([logging, insertConversations(rows, numbers, ofEach)]);
      print(`  ${String(numbers[1])} of ${conversations} conversations, with their rows, after ${seconds()}`);
      // While the next conversations are inserted.
      logging = log.query(EVENTS, [...numbers, 1, ofEach]);
    }
    await logging;
    await log.query(EVENTS, [...given(1, 1), ofEach + 1, LONG_LOG]);
    await rows.query(
      `UPDATE followed_conversations SET event_count = $1::int, last_event_id = md5('event 1 ' || $1::int)
       WHERE id = md5('conversation 1')::uuid`,
      [LONG_LOG],
    );
    await rows.query('VACUUM (ANALYZE)');
  } finally {
    await Promise.all([rows.end(), log.end()]);
  }
  print(`  ${users} users, ${conversations} conversations, ${events} events inserted in ${seconds()}`);
}

async function insertConversations(rows: Client, numbers: unknown[], eventsOfEach: number): Promise<void> {
  for (const statement of OF_CONVERSATIONS) {
    await rows.query(statement, numbers);
  }
  await rows.query(LOGS, [...numbers, eventsOfEach]);
}

/** No commit has to survive a crash here. */
async function connect(databaseUrl: string): Promise<Client> {
  const session = new Client({ connectionString: databaseUrl });
  await session.connect();
  await session.query('SET synchronous_commit = off');
  return session;
}

/** Tables whose size is told, and what one row of each stands for. */
export const GROWING_TABLES = {
  users: 'user',
  api_keys: 'user',
  settings: 'user',
  custom_secrets: 'user',
  webhook_endpoints: 'user',
  provider_tokens: 'user',
  sandboxes: 'sandbox',
  app_conversations: 'conversation',
  followed_conversations: 'conversation',
  app_conversation_start_tasks: 'conversation',
  webhook_deliveries: 'delivery',
  audit_entries: 'audit entry',
  conversation_events: 'event',
} as const;

export type GrowingThing = (typeof GROWING_TABLES)[keyof typeof GROWING_TABLES];

interface TableSize {
  /** Includes what is stored out of line. */
  table: number;
  indexes: number;
}

const SIZE = `
  SELECT sum(pg_table_size(part))::float8 AS "table", sum(pg_indexes_size(part))::float8 AS indexes
  FROM (SELECT $1::regclass::oid AS part UNION SELECT relid::oid FROM pg_partition_tree($1::regclass)) AS parts`;

/** Bytes by what they are stored for, partitions included. */
export async function bytesOf(database: Client): Promise<Map<GrowingThing, TableSize>> {
  const sizes = new Map<GrowingThing, TableSize>();
  for (const [table, thing] of Object.entries(GROWING_TABLES)) {
    const { rows } = await database.query<TableSize>(SIZE, [table]);
    const [{ table: own, indexes } = { table: 0, indexes: 0 }] = rows;
    const before = sizes.get(thing) ?? { table: 0, indexes: 0 };
    sizes.set(thing, { table: before.table + own, indexes: before.indexes + indexes });
  }
  return sizes;
}
