import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, beforeAll } from '@jest/globals';
import type request from 'supertest';
import { committedDocument } from '../support/resolved-document.js';
import { useTestApp } from '../support/use-test-app.js';
import { randomUUID } from 'node:crypto';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { messageEvent } from '../fakes/sample-events.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { openLog } from '../support/followed-logs.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { say } from '../support/starts-client.js';

const ROOT = path.join(import.meta.dirname, '../..');
const UNITS: Record<string, number> = { kB: 1_000, MB: 1_000_000, GB: 1_000_000_000 };
/** Texts are measured in characters, and stored in bytes. */
const WIDE = '€';

/** What a user's requests store, by the tables of SECURITY.md; a text says why there is no such row. Removals add none. */
const STORES: Record<string, string[] | string> = {
  'POST /api/add-git-providers': ['provider_tokens'],
  'POST /api/automation/v1/events/{org_id}/{source}': ['automation_events', 'automation_runs'],
  'POST /api/automation/v1/preset/prompt': ['automations'],
  'POST /api/automation/v1/runs/{run_id}/cancel': 'changes a state',
  'POST /api/automation/v1/validate': 'only answers',
  'POST /api/automation/v1/webhooks': ['automation_webhooks'],
  'PATCH /api/automation/v1/webhooks/{id}': ['automation_webhooks'],
  'POST /api/automation/v1/webhooks/{id}/repository-secret': [],
  'POST /api/automation/v1/webhooks/{id}/rotate-secret': ['automation_webhooks'],
  'PATCH /api/automation/v1/{id}': ['automations'],
  'POST /api/automation/v1/{id}/dispatch': ['automation_runs'],
  'POST /api/cloud-proxy': 'passes on',
  'PATCH /api/conversations/{id}': ['app_conversations'],
  'PATCH /api/organizations/{organization_id}/settings': ['settings', 'mcp_configs'],
  'POST /api/organizations/{organization_id}/secrets': ['custom_secrets'],
  'PUT /api/organizations/{organization_id}/secrets/{name}': ['custom_secrets'],
  'POST /api/secrets': ['custom_secrets'],
  'PUT /api/secrets/{name}': ['custom_secrets'],
  'POST /api/settings': ['settings', 'mcp_configs', 'custom_secrets', 'provider_tokens'],
  'POST /api/unset-provider-tokens': 'removes',
  'POST /api/v1/api-keys': ['api_keys'],
  'POST /api/v1/app-conversations': ['app_conversation_start_tasks', 'app_conversations', 'idempotency_keys'],
  'POST /api/v1/app-conversations/stream-start': ['app_conversation_start_tasks', 'app_conversations'],
  'PATCH /api/v1/app-conversations/{id}': ['app_conversations'],
  'POST /api/v1/app-conversations/{id}/pause': 'changes a state',
  'POST /api/v1/app-conversations/{id}/pull-request': ['followed_pull_requests'],
  'POST /api/v1/app-conversations/{id}/respond-to-confirmation': ['conversation_events'],
  'POST /api/v1/app-conversations/{id}/run': 'changes a state',
  'POST /api/v1/app-conversations/{id}/send-message': ['conversation_events', 'messages with `run: false`'],
  'POST /api/v1/app-conversations/{id}/switch_acp_model': ['app_conversations'],
  'POST /api/v1/app-conversations/{id}/switch_profile': ['app_conversations'],
  'POST /api/v1/conversations/{id}/pending-messages': ['pending_messages'],
  'POST /api/v1/model-check': 'only answers',
  'POST /api/v1/push/subscriptions': ['push_subscriptions'],
  'POST /api/v1/sandboxes': ['sandboxes', 'idempotency_keys'],
  'POST /api/v1/sandboxes/{id}/egress/allow': ['egress_permits'],
  'POST /api/v1/sandboxes/{id}/pause': 'changes a state',
  'POST /api/v1/sandboxes/{id}/resume': 'changes a state',
  'POST /api/v1/secrets': ['custom_secrets'],
  'POST /api/v1/secrets/git-providers': ['provider_tokens'],
  'PUT /api/v1/secrets/{secret_id}': ['custom_secrets'],
  'POST /api/v1/settings': ['settings', 'mcp_configs'],
  'POST /api/v1/settings/profiles/{name}': ['llm_profiles'],
  'POST /api/v1/settings/profiles/{name}/activate': ['settings'],
  'POST /api/v1/settings/profiles/{name}/rename': ['llm_profiles'],
  'POST /api/v1/users': 'administrators alone',
  'PATCH /api/organizations/{organization_id}/members/{user_id}': 'changes a state',
  'POST /api/organizations/{organization_id}/conversations/{conversation_id}/stop': 'changes a state',
  'PATCH /api/v1/users/{id}': 'changes a state',
  'POST /api/v1/users/{id}/disable': 'changes a state',
  'POST /api/v1/users/{id}/enable': 'changes a state',
  'POST /api/v1/webhook-endpoints': ['webhook_endpoints'],
  'PATCH /api/v1/webhook-endpoints/{id}': ['webhook_endpoints'],
  'POST /api/v1/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver': ['webhook_deliveries'],
  'POST /api/v1/webhook-endpoints/{id}/rotate-secret': ['webhook_endpoints'],
  'POST /api/v1/webhook-endpoints/{id}/test': ['webhook_deliveries'],
  'POST /api/v1/webhooks/conversations': ['app_conversations'],
  'POST /api/v1/webhooks/events/{id}': ['conversation_events'],
  'POST /api/v1/webhooks/pull-requests': ['followed_pull_requests'],
  'POST /api/v1/webhooks/pull-requests/push': 'changes a state',
  'POST /api/v1/users/{id}/restore': 'administrators alone',
  'POST /auth/backchannel-logout': 'removes',
  'POST /auth/code': ['sessions'],
  'POST /auth/code/key': ['api_keys'],
  'POST /auth/key': ['sessions'],
  'POST /auth/link': 'begins a sign-in',
  'POST /auth/logout': 'removes',
  'POST /oauth/device/authorize': ['device_logins'],
  'POST /oauth/device/token': ['api_keys'],
  'POST /oauth/device/verify-authenticated': ['api_keys'],
};

/** Where the row of a table is compared that is not filled here. */
const TESTED: Record<string, string> = {
  automation_events: 'test/automations/automation-events.e2e-spec.ts',
  automation_runs: 'test/automations/automation-events.e2e-spec.ts',
  conversation_events: 'test/events/append.e2e-spec.ts',
  'messages with `run: false`': 'test/events/append.e2e-spec.ts',
  app_conversations: 'test/app-conversations/conversation-limit.e2e-spec.ts',
  app_conversation_start_tasks: 'test/app-conversations/start.retention.e2e-spec.ts',
  pending_messages: 'test/app-conversations/pending-messages.e2e-spec.ts',
  followed_pull_requests: 'test/follow/follow.e2e-spec.ts',
  sandboxes: 'test/sandboxes/limits.e2e-spec.ts',
  egress_requests: 'test/sandboxes/egress.e2e-spec.ts',
  egress_permits: 'test/sandboxes/egress-of-users.e2e-spec.ts',
  egress_denials: 'test/sandboxes/egress-of-users.e2e-spec.ts',
  egress_meters: 'test/sandboxes/model-usage.e2e-spec.ts',
  model_usage: 'test/sandboxes/model-usage.e2e-spec.ts',
  idempotency_keys: 'test/sandboxes/sandboxes.e2e-spec.ts',
  webhook_deliveries: 'test/outbound-webhooks/shares.e2e-spec.ts',
  push_subscriptions: 'test/outbound-webhooks/push.e2e-spec.ts',
  push_messages: 'test/outbound-webhooks/push.e2e-spec.ts',
  sessions: 'test/auth/sessions.e2e-spec.ts',
};
/** Tables in which no request of a user adds rows of its own. */
const OF_THE_SERVICE = [
  'service_state',
  'users',
  // One for each account that the issuer has.
  'user_identities',
  'sandbox_hosts',
  // One for each credential of a sandbox's user.
  'sandbox_placeholders',
  'warm_sandboxes',
  'orphaned_sandboxes',
  'removed_conversations',
  'followed_conversations',
  'schema_migrations',
];

interface Fill {
  table: string;
  /** The largest request; the number makes it another one. */
  path: (index: number) => string;
  body: (index: number) => object;
  /** What there may be at most before it is refused. */
  status: number;
}

const FILLS: Fill[] = [
  {
    table: 'custom_secrets',
    path: () => '/api/v1/secrets',
    body: (index) => ({
      name: `S${index}_`.padEnd(255, 'x'),
      value: 'v'.repeat(65_536),
      description: WIDE.repeat(1_024),
    }),
    status: 422,
  },
  {
    table: 'llm_profiles',
    path: (index) => `/api/v1/settings/profiles/${`p${index}-`.padEnd(64, 'x')}`,
    body: () => ({ llm: { model: WIDE.repeat(8_000), api_key: WIDE.repeat(8_000) } }),
    status: 409,
  },
  {
    table: 'api_keys',
    path: () => '/api/v1/api-keys',
    body: () => ({ name: WIDE.repeat(100) }),
    status: 409,
  },
  {
    table: 'webhook_endpoints',
    path: () => '/api/v1/webhook-endpoints',
    body: (index) => ({
      url: `https://hooks.example.com/${index}-`.padEnd(2_000, 'x'),
      description: WIDE.repeat(200),
    }),
    status: 409,
  },
  {
    table: 'automation_webhooks',
    path: () => '/api/automation/v1/webhooks',
    body: (index) => ({
      name: WIDE.repeat(255),
      source: `s${index}-`.padEnd(50, 'x'),
      webhook_secret: WIDE.repeat(255),
      event_key_expr: `"${WIDE.repeat(498)}"`,
      writers_expr: `"${WIDE.repeat(998)}"`,
      signature_header: 'X'.repeat(100),
      event_id_header: 'Y'.repeat(100),
    }),
    status: 409,
  },
  {
    table: 'automations',
    path: () => '/api/automation/v1/preset/prompt',
    // As large as a body may be; the others are only counted.
    body: (index) => ({
      name: WIDE.repeat(500),
      description: WIDE.repeat(2_000),
      prompt: index === 0 ? WIDE.repeat(50_000) : WIDE,
      trigger: {
        type: 'event',
        source: 'x'.repeat(50),
        on: Array.from({ length: 50 }, () => Array.from({ length: 5 }, () => 'x'.repeat(100)).join('.')),
        filter: `'${WIDE.repeat(990)}' == 'x'`,
      },
      template: { id: `${index}`.padEnd(100, 'x'), version: '1', config: { text: 'x'.repeat(32_000) } },
      tags: Array.from({ length: 10 }, (_, tag) => `${tag}`.padEnd(50, 'x')),
      secret_names: index === 0 ? Array.from({ length: 790 }, (_, at) => `S${at}_`.padEnd(1_024, 'x')) : null,
    }),
    status: 409,
  },
  {
    table: 'device_logins',
    path: () => '/oauth/device/authorize',
    body: () => ({}),
    status: 429,
  },
];

const FILLED = new Set([...FILLS.map(({ table }) => table), 'settings', 'mcp_configs', 'provider_tokens']);

/** Bytes by the first column of the tables in SECURITY.md; NaN where they are no number of their own. */
const BOUNDS = new Map(
  readFileSync(path.join(ROOT, 'SECURITY.md'), 'utf8')
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter(({ length }) => length >= 6)
    .map(([, name = '', , bytes = '']) => {
      const [, count = '', unit = ''] = /([\d,]+) (kB|MB|GB)/.exec(bytes) ?? [];
      const table = /^`(\w+)`/.exec(name)?.[1] ?? name;
      return [table, Number(count.replaceAll(',', '')) * (UNITS[unit] ?? NaN)] as const;
    }),
);

const app = useTestApp({ OUTBOUND_ALLOWLIST: '*.example.com' });

describe('what is stored', () => {
  it('is named in SECURITY.md for each operation that writes', () => {
    const writes = Object.entries(committedDocument().paths).flatMap(([address, methods]) =>
      ['post', 'put', 'patch']
        .filter((method) => method in methods)
        .map((method) => `${method.toUpperCase()} ${address}`),
    );
    expect(Object.keys(STORES).toSorted()).toEqual(writes.toSorted());
    const tables = [
      ...new Set(
        Object.values(STORES)
          .filter((stored) => Array.isArray(stored))
          .flat(),
      ),
    ];
    expect(tables.filter((table) => !BOUNDS.has(table))).toEqual([]);
    expect(tables.filter((table) => FILLED.has(table) === table in TESTED)).toEqual([]);
    expect(Object.values(TESTED).filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([]);
  });

  it('is named there for each table', async () => {
    const rows = await app.dataSource.query<{ name: string }[]>(
      `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition`,
    );
    const unknown = rows
      .map(({ name }) => name)
      .filter((name) => !BOUNDS.has(name) && !OF_THE_SERVICE.includes(name));
    expect(unknown).toEqual([]);
  });

  it.each(FILLS)('is at most what is told there: $table', async ({ table, path: address, body, status }) => {
    const user = await app.createUser();
    let answer: request.Response | null = null;
    let sent = 0;
    for (; sent < 2_000 && (answer === null || answer.status < 300); sent += 1) {
      answer = await app.as(user).post(address(sent), body(sent));
    }
    // Its words, where it is another one.
    expect([answer?.status, answer?.status === status || answer?.text]).toEqual([status, true]);
    expect(sent).toBeGreaterThan(2);
    // Not by pg_column_size: what compresses well here would count for little.
    const [size] = await app.dataSource.query<{ bytes: number }[]>(
      `SELECT (count(*) * max(octet_length(t::text)))::float AS bytes FROM ${table} t`,
    );
    const told = BOUNDS.get(table) ?? 0;
    expect(size?.bytes).toBeLessThanOrEqual(told);
    // What is told says something, too.
    expect(size?.bytes).toBeGreaterThan(told / 4);
  });
});

const MOST = 4 * 1024 * 1024;
/** Characters that JSON doubles, in a text that compresses well. */
const LARGE = '"\n'.repeat(100_000);
/** Of 400 kB in JSON each: more than one page. */
const ROWS = 12;

describe('a list whose items are large', () => {
  let log: string;

  beforeAll(async () => {
    const { user } = app;
    const rows = new ConversationRows(app);
    log = await openLog(app, user.id, 'a-sandbox-that-is-gone');
    const events = Array.from({ length: ROWS }, (_none, index) => messageEvent(`e${index}`, 'user', LARGE));
    await app.app.get(EventStore, { strict: false }).store(log, events);
    for (let made = 0; made < ROWS; made += 1) {
      await rows.startTask(user.id, { status: 'ERROR', request: sampleStartRequest(say(LARGE)) });
      await rows.conversation(user.id, { metadata: { text: LARGE } });
    }
  });

  const get = async (path: string): Promise<{ status: number; bytes: number; body: unknown }> => {
    const response = await fetch(`${app.url}/api/v1/${path}`, { headers: app.user.headers });
    const text = await response.text();
    return { status: response.status, bytes: Buffer.byteLength(text), body: JSON.parse(text) };
  };
  const idOf = (item: unknown): string => jsonText(item, 'id') ?? '';
  /** All of it, page by page. */
  const walk = async (path: string): Promise<{ ids: string[]; sizes: number[] }> => {
    const ids: string[] = [];
    const sizes: number[] = [];
    let next = '';
    do {
      const { status, bytes, body } = await get(`${path}?limit=100${next}`);
      expect(status).toBe(200);
      ids.push(...jsonList(body, 'items').map(idOf));
      sizes.push(bytes);
      const id = jsonText(body, 'next_page_id');
      next = id === null ? '' : `&page_id=${id}`;
    } while (next !== '');
    return { ids, sizes };
  };

  it.each([
    ['start tasks', () => 'app-conversations/start-tasks', 'ids'],
    ['conversations', () => 'app-conversations', 'ids'],
    ['events', () => `conversation/${log}/events`, 'id'],
  ])('ends its pages at 4 MiB: %s', async (_name, path, parameter) => {
    const { ids, sizes } = await walk(`${path()}/search`);

    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThanOrEqual(ROWS);
    expect(sizes.length).toBeLessThan(6);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MOST);

    const query = (some: string[]): string => some.map((id) => `${parameter}=${id}`).join('&');
    const [first = '', second = ''] = ids;
    const few = await get(`${path()}?${query([second, randomUUID(), first])}`);
    expect(few.status).toBe(200);
    expect((few.body as unknown[]).map((item) => item && idOf(item))).toEqual([second, null, first]);
    const all = await get(`${path()}?${query(ids)}`);
    expect(all.status).toBe(422);
    expect(all.body).toMatchObject({ detail: [{ loc: ['query', parameter], type: 'too_long' }] });
  });
});
