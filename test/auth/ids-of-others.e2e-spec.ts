import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { operationsOf } from '@slipway/api/openapi/operations.js';
import { SCOPES } from '../../src/common/scopes.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { messageEvent } from '../fakes/sample-events.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { type Attempt, attemptsOf, type Ids } from '../support/operations-with-ids.js';
import { committedDocument } from '../support/resolved-document.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { insertSandboxRow } from '../support/sandbox-rows.js';
import { useTestApp } from '../support/use-test-app.js';

const AUTOMATIONS = '/api/automation/v1';
const WORDS = 'private-of-acme';

const document = committedDocument();
const attempts = attemptsOf(document);
/** What is read without naming anything, and ends. */
const LISTS = operationsOf(document)
  .map(({ name }) => name.replace('GET ', ''))
  .filter((path) => /^\/api\/[^{]*$/.test(path) && !path.includes('/stream'));

/** Ids without a row. */
const NOBODYS: Ids = {
  conversation: hexId(),
  task: hexId(),
  sandbox: 'a'.repeat(22),
  event: randomUUID(),
  apiKey: 'AAAAAAAA',
  user: randomUUID(),
  automation: randomUUID(),
  run: randomUUID(),
  automationEvent: randomUUID(),
  automationWebhook: randomUUID(),
  endpoint: randomUUID(),
  delivery: randomUUID(),
};

describe('ids of another user', () => {
  const app = useTestApp({ OUTBOUND_ALLOWLIST: '*.example.com' });
  const rows = new ConversationRows(app);
  type Headers = Record<string, string>;
  let owner: TestUser;
  let ids: Ids;
  /** Who asks, and for which ids that are not theirs. */
  let callers: [who: string, headers: Headers, of: Ids][];

  beforeAll(async () => {
    owner = await app.createUser();
    const ofUser = { user: owner.id, apiKey: owner.key.split('_')[1] ?? '' };
    ids = { ...NOBODYS, ...ofUser, ...(await converse()), ...(await automate()), ...(await subscribe()) };
    const { conversation, task, sandbox, event } = ids;
    const repositories = ['github:octo/app', 'gitlab:group/*'];
    const stranger = await app.createUser();
    callers = [
      ['a user', await keyOf(stranger, {}), ids],
      ['a sandbox', (await insertSandboxRow(app.dataSource, stranger.id)).headers, ids],
      [
        'a key of the same user for other repositories',
        await keyOf(owner, { repositories }),
        { ...NOBODYS, conversation, task, sandbox, event },
      ],
    ];
  });

  it.each(attempts)('$name answers as for ids that nobody has', async (attempt) => {
    const before = await state();
    for (const [who, headers, of] of callers) {
      const found = await send(attempt, of, headers);
      expect([who, found]).toEqual([who, await send(attempt, NOBODYS, headers)]);
      expect([who, found.body]).toEqual([who, expect.not.stringContaining(WORDS)]);
    }
    expect(await state()).toEqual(before);
  });

  it('are in no list of others', async () => {
    const hidden = [WORDS, ...Object.values(ids).filter((id) => !Object.values(NOBODYS).includes(id))];
    expect(hidden).toHaveLength(1 + Object.keys(ids).length);
    expect(attempts.length).toBeGreaterThan(80);
    for (const [who, headers] of callers.slice(0, 2)) {
      for (const path of LISTS) {
        const list = await (await fetch(`${app.url}${path}`, { headers })).text();
        expect([who, path, hidden.filter((each) => list.includes(each))]).toEqual([who, path, []]);
      }
    }
  });

  async function keyOf(user: TestUser, members: object): Promise<Headers> {
    const { body } = await app
      .as(user)
      .post('/api/v1/api-keys', { name: 'ci', scopes: SCOPES, ...members })
      .expect(201);
    return { 'X-Session-API-Key': body.key };
  }

  async function post(path: string, body: object): Promise<string> {
    const answer = await app.as(owner).post(path, body).expect(201);
    return answer.body.id;
  }

  async function converse(): Promise<Partial<Ids>> {
    const sandbox = (await rows.sandbox(owner.id, { address: 'http://127.0.0.1:9' })).id;
    const elsewhere = { gitProvider: 'github', selectedRepository: 'acme/secret' } as const;
    const members = { ...elsewhere, sandboxId: sandbox, title: WORDS };
    const { id, hex } = await rows.conversation(owner.id, members, FOLLOWED_ELSEWHERE);
    const task = await rows.startTask(owner.id, {
      appConversationId: id,
      sandboxId: sandbox,
      status: 'READY',
      request: sampleStartRequest({ selected_repository: 'acme/secret', git_provider: 'github' }),
    });
    const event = randomUUID();
    await app.app.get(EventStore, { strict: false }).store(id, [messageEvent(event, 'user', WORDS)]);
    return { conversation: hex, task: task.hex, sandbox, event };
  }

  async function automate(): Promise<Partial<Ids>> {
    const trigger = { type: 'cron', schedule: '0 9 * * *' };
    const definition = { name: WORDS, prompt: 'say hello', trigger, state: 'INACTIVE' };
    const automation = await post(`${AUTOMATIONS}/preset/prompt`, definition);
    const webhook = { name: WORDS, source: 'own', webhook_secret: 'a-secret-of-the-owner' };
    const automationWebhook = await post(`${AUTOMATIONS}/webhooks`, webhook);
    const [run, automationEvent] = [randomUUID(), randomUUID()];
    await app.dataSource.query(
      `INSERT INTO automation_runs (id, automation_id, user_id, cause, trigger_source, status, work, completed_at)
       VALUES ($1, $2, $3, 'manual:one', 'manual', 'COMPLETED', '{}', now())`,
      [run, automation, owner.id],
    );
    await app.dataSource.query(
      `INSERT INTO automation_events (id, user_id, org_id, source, delivery_id, event_key, payload)
       VALUES ($1, $2, $2, 'own', 'a-delivery', 'build', '{}')`,
      [automationEvent, owner.id],
    );
    return { automation, automationWebhook, run, automationEvent };
  }

  async function subscribe(): Promise<Partial<Ids>> {
    const url = `https://ci.example.com/${WORDS}`;
    const endpoint = await post('/api/v1/webhook-endpoints', { url, enabled: false });
    const delivery = randomUUID();
    await app.dataSource.query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, event_type, data, status, created_at)
       VALUES ($1, $2, 'conversation.finished', '{}', 'failed', now())`,
      [delivery, endpoint],
    );
    return { endpoint, delivery };
  }

  /** All rows of the owner; that a key was used is noted later. */
  async function state(): Promise<unknown> {
    const tables = await app.dataSource.query<{ name: string }[]>(
      `SELECT table_name AS name FROM information_schema.columns
       WHERE table_schema = 'public' AND column_name = 'user_id'`,
    );
    const rowsOf = tables.map(
      ({ name }) =>
        `SELECT '${name}' AS name, (to_jsonb(t) - 'last_used_at')::text AS row FROM "${name}" t WHERE user_id = $1`,
    );
    rowsOf.push(`SELECT 'users', to_jsonb(u)::text FROM users u WHERE id = $1`);
    return app.dataSource.query(`${rowsOf.join(' UNION ALL ')} ORDER BY 1, 2`, [owner.id]);
  }

  /** An answer without what differs from request to request, and without the ids that were asked for. */
  async function send(
    { method, path, body: bodyOf }: Attempt,
    of: Ids,
    headers: Headers,
  ): Promise<{ status: number; body: string }> {
    const body = bodyOf?.(of);
    const response = await fetch(`${app.url}${path(of)}`, {
      method,
      headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
      body: body && JSON.stringify(body),
    });
    const text = (await response.text()).replace(/"request_id":"[^"]*"/, '');
    return {
      status: response.status,
      body: Object.values(of).reduce((left, id) => left.replaceAll(id, 'ID'), text),
    };
  }
});

function hexId(): string {
  return randomUUID().replaceAll('-', '');
}
