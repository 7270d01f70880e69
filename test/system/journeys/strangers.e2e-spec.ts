import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { jsonAt } from '@slipway/common/json-access.js';
import { type ApiAnswer, type ApiClient, type Json, type Started, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, shell } from './support/script.js';

jest.setTimeout(180_000);

/** What identifies things of a user. */
interface Ids {
  conversation: string;
  task: string;
  sandbox: string;
  event: string;
  endpoint: string;
}

interface Attempt {
  method: string;
  /** As OpenAPI names it. */
  route: string;
  path: (ids: Ids) => string;
  body?: (ids: Ids) => object;
  /** Sent with the key of the stranger's own sandbox. */
  asSandbox?: boolean;
}

const C = '/api/v1/app-conversations';
const E = '/api/v1/conversation';
const S = '/api/v1/sandboxes';
const W = '/api/v1/webhook-endpoints';
const MESSAGE = { content: [{ type: 'text', text: 'Hello.' }] };

const ATTEMPTS: Attempt[] = [
  { method: 'GET', route: C, path: ({ conversation }) => `${C}?ids=${conversation}` },
  { method: 'POST', route: C, path: () => C, body: ({ sandbox }) => ({ sandbox_id: sandbox }) },
  {
    method: 'POST',
    route: C,
    path: () => C,
    body: ({ conversation }) => ({ parent_conversation_id: conversation }),
  },
  {
    method: 'POST',
    route: `${C}/stream-start`,
    path: () => `${C}/stream-start`,
    body: ({ sandbox }) => ({ sandbox_id: sandbox }),
  },
  { method: 'GET', route: `${C}/search`, path: ({ sandbox }) => `${C}/search?sandbox_id__eq=${sandbox}` },
  { method: 'GET', route: `${C}/count`, path: ({ sandbox }) => `${C}/count?sandbox_id__eq=${sandbox}` },
  { method: 'GET', route: `${C}/start-tasks`, path: ({ task }) => `${C}/start-tasks?ids=${task}` },
  {
    method: 'GET',
    route: `${C}/start-tasks/search`,
    path: ({ conversation }) => `${C}/start-tasks/search?conversation_id__eq=${conversation}`,
  },
  {
    method: 'GET',
    route: `${C}/start-tasks/count`,
    path: ({ conversation }) => `${C}/start-tasks/count?conversation_id__eq=${conversation}`,
  },
  {
    method: 'PATCH',
    route: `${C}/{id}`,
    path: ({ conversation }) => `${C}/${conversation}`,
    body: () => ({ title: 'Mine' }),
  },
  { method: 'DELETE', route: `${C}/{id}`, path: ({ conversation }) => `${C}/${conversation}` },
  {
    method: 'POST',
    route: `${C}/{id}/send-message`,
    path: ({ conversation }) => `${C}/${conversation}/send-message`,
    body: () => MESSAGE,
  },
  {
    method: 'POST',
    route: `${C}/{id}/respond-to-confirmation`,
    path: ({ conversation }) => `${C}/${conversation}/respond-to-confirmation`,
    body: () => ({ accept: true }),
  },
  { method: 'POST', route: `${C}/{id}/pause`, path: ({ conversation }) => `${C}/${conversation}/pause` },
  { method: 'POST', route: `${C}/{id}/run`, path: ({ conversation }) => `${C}/${conversation}/run` },
  {
    method: 'GET',
    route: `${C}/{id}/download`,
    path: ({ conversation }) => `${C}/${conversation}/download`,
  },
  {
    method: 'POST',
    route: '/api/v1/conversations/{id}/pending-messages',
    path: ({ conversation }) => `/api/v1/conversations/${conversation}/pending-messages`,
    body: () => ({ content: [{ text: 'hello' }] }),
  },
  { method: 'GET', route: `${C}/{id}/files`, path: ({ conversation }) => `${C}/${conversation}/files` },
  { method: 'GET', route: `${C}/{id}/skills`, path: ({ conversation }) => `${C}/${conversation}/skills` },
  { method: 'GET', route: `${C}/{id}/hooks`, path: ({ conversation }) => `${C}/${conversation}/hooks` },
  {
    method: 'POST',
    route: `${C}/{id}/switch_acp_model`,
    path: ({ conversation }) => `${C}/${conversation}/switch_acp_model`,
    body: () => ({ model: 'another' }),
  },
  {
    method: 'POST',
    route: `${C}/{id}/switch_profile`,
    path: ({ conversation }) => `${C}/${conversation}/switch_profile`,
    body: () => ({ profile_name: 'any' }),
  },
  {
    method: 'POST',
    route: `${C}/{id}/pull-request`,
    path: ({ conversation }) => `${C}/${conversation}/pull-request`,
    body: () => ({}),
  },
  { method: 'GET', route: `${S}/{id}/ports`, path: ({ sandbox }) => `${S}/${sandbox}/ports` },
  { method: 'GET', route: `${S}/{id}/egress/log`, path: ({ sandbox }) => `${S}/${sandbox}/egress/log` },
  { method: 'GET', route: `${W}/{id}`, path: ({ endpoint }) => `${W}/${endpoint}` },
  {
    method: 'PATCH',
    route: `${W}/{id}`,
    path: ({ endpoint }) => `${W}/${endpoint}`,
    body: () => ({ enabled: true }),
  },
  { method: 'DELETE', route: `${W}/{id}`, path: ({ endpoint }) => `${W}/${endpoint}` },
  {
    method: 'POST',
    route: `${W}/{id}/rotate-secret`,
    path: ({ endpoint }) => `${W}/${endpoint}/rotate-secret`,
  },
  { method: 'POST', route: `${W}/{id}/test`, path: ({ endpoint }) => `${W}/${endpoint}/test` },
  { method: 'GET', route: `${W}/{id}/deliveries`, path: ({ endpoint }) => `${W}/${endpoint}/deliveries` },
  {
    method: 'POST',
    route: `${W}/{id}/deliveries/{delivery_id}/redeliver`,
    path: ({ endpoint }) => `${W}/${endpoint}/deliveries/${randomUUID()}/redeliver`,
  },
  { method: 'GET', route: `${C}/{id}/file`, path: ({ conversation }) => `${C}/${conversation}/file` },
  {
    method: 'GET',
    route: `${C}/{id}/git/changes`,
    path: ({ conversation }) => `${C}/${conversation}/git/changes`,
  },
  {
    method: 'GET',
    route: `${C}/{id}/git/diff`,
    path: ({ conversation }) => `${C}/${conversation}/git/diff?path=a`,
  },
  {
    method: 'GET',
    route: `${E}/{id}/events`,
    path: ({ conversation, event }) => `${E}/${conversation}/events?id=${event}`,
  },
  {
    method: 'GET',
    route: `${E}/{id}/events/search`,
    path: ({ conversation }) => `${E}/${conversation}/events/search`,
  },
  {
    method: 'GET',
    route: `${E}/{id}/events/count`,
    path: ({ conversation }) => `${E}/${conversation}/events/count`,
  },
  {
    method: 'GET',
    route: `${E}/{id}/events/stream`,
    path: ({ conversation }) => `${E}/${conversation}/events/stream`,
  },
  { method: 'GET', route: S, path: ({ sandbox }) => `${S}?id=${sandbox}` },
  { method: 'POST', route: `${S}/{id}/pause`, path: ({ sandbox }) => `${S}/${sandbox}/pause` },
  { method: 'POST', route: `${S}/{id}/resume`, path: ({ sandbox }) => `${S}/${sandbox}/resume` },
  { method: 'DELETE', route: `${S}/{id}`, path: ({ sandbox }) => `${S}/${sandbox}` },
  {
    method: 'GET',
    route: `${S}/{sandbox_id}/settings/secrets`,
    path: ({ sandbox }) => `${S}/${sandbox}/settings/secrets`,
    asSandbox: true,
  },
  {
    method: 'GET',
    route: `${S}/{sandbox_id}/settings/secrets/{secret_name}`,
    path: ({ sandbox }) => `${S}/${sandbox}/settings/secrets/DEPLOY_TOKEN`,
    asSandbox: true,
  },
  {
    method: 'POST',
    route: '/api/v1/webhooks/events/{id}',
    path: ({ conversation }) => `/api/v1/webhooks/events/${conversation}`,
    body: () => [],
    asSandbox: true,
  },
  {
    method: 'POST',
    route: '/api/v1/webhooks/conversations',
    path: () => '/api/v1/webhooks/conversations',
    body: ({ conversation }) => ({ id: conversation }),
    asSandbox: true,
  },
  {
    method: 'POST',
    route: '/api/v1/webhooks/pull-requests',
    path: () => '/api/v1/webhooks/pull-requests',
    body: ({ conversation }) => ({
      conversation_id: conversation,
      source_branch: 'a',
      title: 'b',
      body: 'c',
    }),
    asSandbox: true,
  },
  {
    method: 'POST',
    route: '/api/v1/webhooks/pull-requests/push',
    path: () => '/api/v1/webhooks/pull-requests/push',
    body: ({ conversation }) => ({ conversation_id: conversation, branch: 'a', directory: '.' }),
    asSandbox: true,
  },
];
/** Routes that name nothing of a user, or by names that every user has: they have tests of their own. */
const WITHOUT_IDS = [
  /\/git\/suggested-tasks\/search$/,
  /^\/api\/v1\/(api-keys|audit|diagnostics|push|users|sandbox-specs)(\/|$)/,
  /^\/api\/v1\/sandboxes\/search$/,
  /^\/api\/v1\/(events\/count|skills\/search)$/,
  /^\/api\/v1\/git\/(repositories|branches|installations)\/search$/,
  /^\/api\/v1\/(secrets|settings|model-check|config|web-client)(\/|$)/,
  /^\/api\/v1\/webhook-endpoints$/,
];
/** What the agent server of a sandbox is asked through the service. */
const AGENT_SERVER = '/agent-server';

describe('what belongs to another user', () => {
  let world: JourneyWorld;
  let owner: ApiClient;
  let stranger: ApiClient;
  let owned: Started;
  let ids: Ids;
  let sandboxKey: string;
  const nobody: Ids = {
    conversation: randomUUID().replaceAll('-', ''),
    task: randomUUID().replaceAll('-', ''),
    sandbox: 'zzzzzzzzzzzzzzzzzzzzzz',
    event: randomUUID(),
    endpoint: randomUUID(),
  };

  beforeAll(async () => {
    world = await JourneyWorld.open();
    await world.start();
    owner = await world.createUser();
    stranger = await world.createUser();
    await owner.post('/api/secrets', { name: 'DEPLOY_TOKEN', value: 'owners-secret-77210' });
    const [started, strangers] = await Promise.all([
      owner.started(message(shell('echo private-of-owner'))),
      stranger.started({}),
    ]);
    owned = started;
    await owner.conversationIn(owned.id, 'finished');
    const [event] = await owner.events(owned.id);
    const endpoint = await owner.post(W, { url: 'https://ci.example.com/hook', enabled: false });
    ids = {
      conversation: owned.id,
      task: owned.taskId,
      sandbox: owned.sandboxId,
      event: text(event, 'id'),
      endpoint: text(endpoint, 'id'),
    };
    sandboxKey = text(await stranger.sandbox(strangers.sandboxId), 'session_api_key');
  });

  afterAll(async () => {
    await world.close();
  });

  const attempt = async (one: Attempt, of: Ids): Promise<ApiAnswer> =>
    stranger.send(
      one.method,
      one.path(of),
      one.body?.(of),
      one.asSandbox ? { 'X-Session-API-Key': sandboxKey } : {},
    );

  it.each(ATTEMPTS.map((one): [string, Attempt] => [`${one.method} ${one.route}`, one]))(
    'is answered like what nobody has: %s',
    async (_, one) => {
      const before = await seen();
      const found = await attempt(one, ids);
      const unknown = await attempt(one, nobody);
      expect(anonymous(found, ids)).toEqual(anonymous(unknown, nobody));
      expect(JSON.stringify(found.body)).not.toContain('private-of-owner');
      expect(await seen()).toEqual(before);
    },
  );

  /** What the owner has; a stranger changes none of it. */
  const seen = async (): Promise<Json> => {
    const conversation = await owner.conversation(owned.id);
    const sandbox = await owner.sandbox(owned.sandboxId);
    return [
      jsonAt(conversation, 'title'),
      jsonAt(conversation, 'execution_status'),
      jsonAt(sandbox, 'status'),
      await owner.get(`${E}/${owned.id}/events/count`),
      await owner.get(W),
    ];
  };

  it('is in no list', async () => {
    for (const path of [`${C}/search`, `${C}/start-tasks/search`, `${S}/search`]) {
      const list = JSON.stringify(await stranger.get(path));
      expect(list).not.toContain(ids.conversation);
      expect(list).not.toContain(ids.sandbox);
    }
  });

  it('is not to be had of its agent server', async () => {
    const path = `${S}/${ids.sandbox}${AGENT_SERVER}/api/conversations/${ids.conversation}`;
    const keys = [sandboxKey, stranger.key, owner.key];
    const answers = await Promise.all(
      keys.map((key) => stranger.send('GET', path, undefined, { 'X-Session-API-Key': key })),
    );
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401]);
  });

  it('was asked for on every route there is', async () => {
    const document = await owner.get('/openapi.json');
    const routes = Object.keys(Object(jsonAt(document, 'paths')))
      .filter((route) => route.startsWith('/api/v1/'))
      .filter(
        (route) => !WITHOUT_IDS.some((pattern) => pattern.test(route)) && !route.includes(AGENT_SERVER),
      );
    const tried = new Set(ATTEMPTS.map(({ route }) => route));
    expect(routes.filter((route) => !tried.has(route))).toEqual([]);
  });
});

/** An answer without what differs from request to request, and without the ids that were asked for. */
function anonymous({ status, body }: ApiAnswer, of: Ids): { status: number; body: string } {
  const hidden = [...Object.values(of), ...Object.values(of).map(withDashes)];
  const shown = JSON.stringify(body, (name, value: unknown) => (name === 'request_id' ? 'any' : value));
  return { status, body: hidden.reduce((left, id) => left.replaceAll(id, 'ID'), shown) };
}

function withDashes(id: string): string {
  return id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
