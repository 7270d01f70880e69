import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonText } from '@slipway/common/json-access.js';
import { operationsOf } from '../../src/common/openapi/operations.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { FakeServer } from '../fakes/fake-server.js';
import { messageEvent } from '../fakes/sample-events.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { type Attempt, attemptsOf, type Ids } from '../support/operations-with-ids.js';
import { committedDocument } from '../support/resolved-document.js';

const AUTOMATIONS = '/api/automation/v1';
const ENDPOINTS = '/api/v1/webhook-endpoints';
const SECRET = 'a-secret-of-the-owner';
/** Nothing listens there: a request that gets as far is answered with 502. */
const AGENT_SERVER = 'http://127.0.0.1:9';

interface Answer {
  status: number;
  body: string;
}

const attempts = attemptsOf(committedDocument());
/** What is read without naming anything. */
const lists = operationsOf(committedDocument())
  .filter(({ name }) => /^GET \/api\/[^{]*$/.test(name) && !name.includes('/stream'))
  .map(({ name }) => name.replace('GET ', ''));
const nobodys: Ids = {
  conversation: hexId(),
  task: hexId(),
  sandbox: randomBytes(11).toString('hex'),
  event: randomUUID(),
  apiKey: randomBytes(4).toString('hex'),
  user: randomUUID(),
  automation: randomUUID(),
  run: randomUUID(),
  automationEvent: randomUUID(),
  automationWebhook: randomUUID(),
  endpoint: randomUUID(),
  delivery: randomUUID(),
};

/** What readers of a shared conversation are answered; of this one nothing is kept. */
const READ_BY_ALL = new Map([
  ['GET /api/v1/app-conversations (ids)', 200],
  ['GET /api/v1/app-conversations/search (sandbox_id__eq)', 200],
  ['GET /api/v1/app-conversations/count (sandbox_id__eq)', 200],
  ['GET /api/v1/app-conversations (sandbox_id__eq)', 200],
  ['GET /api/v1/app-conversations/{id}/download', 200],
  ['GET /api/v1/app-conversations/{id}/files', 409],
  ['GET /api/v1/app-conversations/{id}/git/changes (path)', 409],
  ['GET /api/v1/app-conversations/{id}/git/diff (path)', 409],
  ['GET /api/v1/conversation/{id}/events (id)', 200],
  ['GET /api/v1/conversation/{id}/events/count', 200],
  ['GET /api/v1/conversation/{id}/events/search', 200],
  ['GET /api/v1/conversation/{id}/events/stream', 200],
  ['GET /api/v1/events/count (conversation_id__eq)', 200],
]);

/** What administrators read and do of others. The rest is theirs no more than anybody's. */
const OF_ADMINISTRATORS =
  /^[A-Z]+ \/api\/(?:organizations\/|v1\/(?:users\/\{id\}|audit|api-keys|conversation\/|conversations\/|events\/|app-conversations|sandboxes))/;

let receiver: FakeServer;
let app: TestApp;
let owner: TestUser;
let owned: Ids;
/** Of a stranger, of a sandbox of that stranger, and of a viewer. */
let keys: string[];
let admin: TestUser;
/** As those of `owned`, but for a conversation that another user shares, and its sandbox. */
let shared: Ids;
let sharer: TestUser;
/** Keys of readers of it: of a member, and of a viewer. */
let readers: string[];

beforeAll(async () => {
  receiver = await FakeServer.start(() => ({ status: 204 }));
  app = await createTestApp({ WEBHOOK_HOST_ALLOWLIST: receiver.origin });
  owner = app.user;
  const rows = new ConversationRows(app);
  const stranger = await app.createUser();
  const key = `key-of-a-sandbox-${randomUUID()}`;
  await rows.sandbox(stranger.id, { key, address: AGENT_SERVER });
  const readsOnly = await app.createUser();
  await app.dataSource.query('UPDATE users SET reads_only = true WHERE id = $1', [readsOnly.id]);
  keys = [stranger.key, key, readsOnly.key];
  ({ admin } = app);
  owned = {
    user: owner.id,
    apiKey: owner.key.slice(4, 12),
    ...(await converse(rows)),
    ...(await automate()),
  };
  sharer = await app.createUser();
  const { id: sandbox } = await rows.sandbox(sharer.id, { address: AGENT_SERVER });
  const { id, hex } = await rows.conversation(
    sharer.id,
    { sandboxId: sandbox, title: 'shared-by-sharer', visibility: 'organization' },
    FOLLOWED_ELSEWHERE,
  );
  await app.app
    .get(EventStore, { strict: false })
    .store(id, [messageEvent(randomUUID(), 'user', 'shared-by-sharer')]);
  shared = { ...owned, conversation: hex, sandbox };
  const viewer = await app.createUser();
  await app.dataSource.query('UPDATE users SET reads_only = true WHERE id = $1', [viewer.id]);
  readers = [stranger.key, viewer.key];
});

afterAll(async () => {
  await app.close();
  await receiver.close();
});

describe('an operation with the ids of another user', () => {
  it.each(attempts)('$name answers as for ids that nobody has, and changes nothing', async (attempt) => {
    const before = await rowsOf(owner);
    for (const key of keys) {
      const found = await send(attempt, owned, key);
      const unknown = await send(attempt, nobodys, key);
      expect(found).toEqual(unknown);
    }
    expect(await rowsOf(owner)).toEqual(before);
  });

  it.each(attempts.filter(({ name }) => !OF_ADMINISTRATORS.test(name)))(
    '$name answers an administrator as anybody',
    async (attempt) => {
      const before = await rowsOf(owner);
      const found = await send(attempt, owned, admin.key);
      expect(found).toEqual(await send(attempt, nobodys, admin.key));
      expect(await rowsOf(owner)).toEqual(before);
    },
  );

  it.each(attempts)('$name reads a shared one, and does nothing to it', async (attempt) => {
    const before = await rowsOf(sharer);
    for (const key of readers) {
      const found = await send(attempt, shared, key);
      const unknown = await send(attempt, nobodys, key);
      if (READ_BY_ALL.has(attempt.name)) {
        expect([attempt.name, found.status]).toEqual([attempt.name, READ_BY_ALL.get(attempt.name)]);
        expect(found.body).not.toContain(AGENT_SERVER);
      } else if (found.status === 403) {
        expect(found.body).toMatch(/"code":"(?:forbidden|insufficient_scope)"/);
      } else {
        expect(found).toEqual(unknown);
      }
    }
    expect(await rowsOf(sharer)).toEqual(before);
  });

  it.each(lists)('is not needed to be shown nothing of that user: %s', async (path) => {
    const response = await fetch(`${app.url}${path}`, { headers: { 'X-Session-API-Key': keys[0] ?? '' } });
    const text = await response.text();
    const shown = [...Object.values(owned), 'private-of-owner'].filter((each) => text.includes(each));
    expect(shown).toEqual([]);
  });

  it('is tried on all that name something by its id', () => {
    expect(attempts.length).toBeGreaterThan(80);
    expect(Object.values(owned).filter((id) => id === '')).toEqual([]);
  });
});

async function converse(
  rows: ConversationRows,
): Promise<Pick<Ids, 'conversation' | 'task' | 'sandbox' | 'event'>> {
  const sandbox = (await rows.sandbox(owner.id, { address: AGENT_SERVER })).id;
  const members = { sandboxId: sandbox, title: 'private-of-owner' };
  const { id, hex } = await rows.conversation(owner.id, members, FOLLOWED_ELSEWHERE);
  const ofTask = { appConversationId: id, sandboxId: sandbox, status: 'READY' } as const;
  const { hex: task } = await rows.startTask(owner.id, ofTask);
  const event = randomUUID();
  await app.app
    .get(EventStore, { strict: false })
    .store(id, [messageEvent(event, 'user', 'private-of-owner')]);
  return { conversation: hex, task, sandbox, event };
}

async function automate(): Promise<
  Pick<Ids, 'automation' | 'run' | 'automationEvent' | 'automationWebhook' | 'endpoint' | 'delivery'>
> {
  const webhook = { name: 'Host', source: 'own', webhook_secret: SECRET };
  const automationWebhook = idIn(await asOwner('POST', `${AUTOMATIONS}/webhooks`, webhook));
  const trigger = { type: 'cron', schedule: '0 9 * * *' };
  // Nothing may begin or end by itself meanwhile.
  const body = { name: 'private-of-owner', prompt: 'say hello', trigger, state: 'INACTIVE' };
  const automation = idIn(await asOwner('POST', `${AUTOMATIONS}/preset/prompt`, body));
  const run = randomUUID();
  await app.dataSource.query(
    `INSERT INTO automation_runs (id, automation_id, user_id, cause, trigger_source, status, work, completed_at)
     VALUES ($1, $2, $3, 'manual:one', 'manual', 'COMPLETED', '{}', now())`,
    [run, automation, owner.id],
  );
  const event = JSON.stringify({ type: 'build' });
  const digest = createHmac('sha256', SECRET).update(event).digest('hex');
  const received = await asOwner('POST', `${AUTOMATIONS}/events/${owner.id}/own`, event, {
    'X-Signature-256': digest,
  });
  const endpoint = idIn(await asOwner('POST', ENDPOINTS, { url: `${receiver.origin}/hook`, enabled: false }));
  const delivery = idIn(await asOwner('POST', `${ENDPOINTS}/${endpoint}/test`));
  return {
    automation,
    run,
    automationEvent: jsonText(received, 'event_id') ?? '',
    automationWebhook,
    endpoint,
    delivery,
  };
}

async function asOwner(
  method: string,
  path: string,
  body: object | string = {},
  headers: Record<string, string> = {},
): Promise<unknown> {
  const response = await fetch(`${app.url}${path}`, {
    method,
    headers: { ...owner.headers, 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  expect([path, response.ok]).toEqual([path, true]);
  return await response.json();
}

function idIn(answer: unknown): string {
  return jsonText(answer, 'id') ?? '';
}

function hexId(): string {
  return randomUUID().replaceAll('-', '');
}

/** An answer without what differs from request to request, and without the ids that were asked for. */
async function send({ method, path, body: bodyOf }: Attempt, ids: Ids, key: string): Promise<Answer> {
  const body = bodyOf?.(ids);
  const response = await fetch(`${app.url}${path(ids)}`, {
    method,
    headers: { 'X-Session-API-Key': key, ...(body && { 'Content-Type': 'application/json' }) },
    body: body && JSON.stringify(body),
  });
  const text = (await textOf(response)).replace(/"request_id":"[^"]*"/, '');
  const hidden = Object.values(ids).flatMap((id) => [id, withDashes(id)]);
  return { status: response.status, body: hidden.reduce((left, id) => left.replaceAll(id, 'ID'), text) };
}

/** Of a stream what it begins with, as it does not end. */
async function textOf(response: Response): Promise<string> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    return await response.text();
  }
  for await (const bytes of response.body ?? []) {
    return new TextDecoder().decode(bytes);
  }
  return '';
}

function withDashes(id: string): string {
  return id.replace(/^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/, '$1-$2-$3-$4-$5');
}

/** All rows of a user, by their tables; that a key was used is noted later. */
async function rowsOf({ id }: TestUser): Promise<unknown[]> {
  const tables = await app.dataSource.query<{ name: string }[]>(
    `SELECT table_name AS name FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name = 'user_id' ORDER BY 1`,
  );
  return await Promise.all(
    tables.map(async ({ name }) => [
      name,
      await app.dataSource.query(
        `SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM "${name}" t WHERE user_id = $1 ORDER BY 1`,
        [id],
      ),
    ]),
  );
}
