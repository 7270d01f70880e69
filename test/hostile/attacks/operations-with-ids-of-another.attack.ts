import { randomBytes, randomUUID } from 'node:crypto';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { type ApiAnswer, text } from '../../system/journeys/support/api-client.js';
import { type Attack, everywhere, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { EventSender } from '../support/event-sender.js';
import { type Attempt, attemptsOf, type Ids } from '../support/operations.js';
import { customSecretOf, type Tenant } from '../support/tenant.js';

const E = '/api/v1/conversation';
const AUTOMATIONS = '/api/automation/v1';
const ENDPOINTS = '/api/v1/webhook-endpoints';

export const operationsWithIdsOfAnother: Attack = {
  name: 'operations-with-ids-of-another',
  finding: 'held',
  what: "Bob sends every operation of openapi.json with Alice's ids, with his key, his sandbox's key and none.",
  expected: everywhere(
    held("answered like ids that nobody has, or without a key 401; Alice's things stay as they are"),
  ),
  run: async (world) => {
    const { alice, bob } = world;
    const attempts = attemptsOf(await bob.client.get('/openapi.json'));
    const [alices, nobodys] = [await idsOf(world), unknownIds()];
    const before = await thingsOf(alice);
    const differences: string[] = [];
    for (const key of [bob.client.key, await bob.sessionKey(), '']) {
      for (const attempt of attempts) {
        const found = await send(bob, attempt, alices, key);
        const unknown = await send(bob, attempt, nobodys, key);
        const difference =
          key === '' ? without(found) : compare(anonymous(found, alices), anonymous(unknown, nobodys));
        if (difference !== null || JSON.stringify(found.body).includes(customSecretOf('Alice'))) {
          differences.push(`${attempt.name}: ${difference ?? 'it shows a secret of Alice'}`);
        }
      }
    }
    const after = await thingsOf(alice);
    const changed = before.filter((thing, index) => thing !== after[index]);
    return {
      held: differences.length === 0 && changed.length === 0 && attempts.length > 30,
      seen:
        differences.length + changed.length === 0
          ? `${attempts.length} operations with 3 keys: none tells Alice's ids from unknown ones, nothing of hers has changed`
          : [...differences, ...changed.map((thing) => `changed: ${thing}`)].slice(0, 5).join('; '),
    };
  },
};

async function send(bob: Tenant, attempt: Attempt, ids: Ids, key: string): Promise<ApiAnswer> {
  return bob.send(attempt.method, attempt.path(ids), attempt.body?.(ids), { 'X-Session-API-Key': key });
}

/** Without a key nothing is answered but 401. */
function without({ status }: ApiAnswer): string | null {
  return status === 401 ? null : `${status} without a key`;
}

function compare(found: string, unknown: string): string | null {
  return found === unknown ? null : `${found.slice(0, 200)} instead of ${unknown.slice(0, 200)}`;
}

/** An answer without what differs from request to request, and without the ids that were asked for. */
function anonymous({ status, body }: ApiAnswer, of: Ids): string {
  const hidden = [...Object.values(of), ...Object.values(of).map(withDashes)];
  const shown = JSON.stringify(body, (name, value: unknown) => (name === 'request_id' ? 'any' : value)) ?? '';
  return `${status} ${hidden.reduce((left, id) => left.replaceAll(id, 'ID'), shown)}`;
}

function withDashes(id: string): string {
  return id.replace(/^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/, '$1-$2-$3-$4-$5');
}

async function idsOf(world: HostileWorld): Promise<Ids> {
  const { alice, admin } = world;
  const [event] = await alice.client.events(alice.conversationId);
  const user = text(await alice.client.get('/api/v1/users/me'), 'id');
  const [apiKey] = jsonList(await admin.get(`/api/v1/api-keys?user_id=${user}`));
  return {
    conversation: alice.conversationId,
    task: alice.startTaskId,
    sandbox: alice.sandboxId,
    event: event === undefined ? randomUUID() : text(event, 'id'),
    apiKey: text(apiKey, 'id'),
    user,
    ...(await automatedIdsOf(world)),
    ...(await endpointIdsOf(alice)),
  };
}

/** Of a run that is over, as what it starts would change what Alice has. */
async function automatedIdsOf(
  world: HostileWorld,
): Promise<Pick<Ids, 'automation' | 'run' | 'automationEvent' | 'automationWebhook'>> {
  const { client } = world.alice;
  const sender = await EventSender.create(world, client);
  const automation = await sender.automation({});
  const event: unknown = await (await sender.deliver({ action: 'opened', issue: { number: 7 } })).json();
  const [match] = jsonList(event, 'matched');
  const run = text(match, 'run_id');
  await client.post(`${AUTOMATIONS}/runs/${run}/cancel`);
  const [webhook] = jsonList(await client.get(`${AUTOMATIONS}/webhooks`), 'webhooks');
  return {
    automation,
    run,
    automationEvent: text(event, 'event_id'),
    automationWebhook: text(webhook, 'id'),
  };
}

async function endpointIdsOf({ client }: Tenant): Promise<Pick<Ids, 'endpoint' | 'delivery'>> {
  const endpoint = text(await client.post(ENDPOINTS, { url: 'https://ci.example.com/slipway' }), 'id');
  return { endpoint, delivery: text(await client.post(`${ENDPOINTS}/${endpoint}/test`), 'id') };
}

function unknownIds(): Ids {
  const id = () => randomUUID().replaceAll('-', '');
  return {
    conversation: id(),
    task: id(),
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
}

/** What Alice has, as far as the API shows it, but not when she last asked. */
async function thingsOf(alice: Tenant): Promise<string[]> {
  const conversation = await alice.client.conversation(alice.conversationId);
  const things = [
    ['conversation', jsonAt(conversation, 'title'), jsonAt(conversation, 'execution_status')],
    ['sandbox', jsonAt(await alice.sandbox(), 'status'), await alice.sessionKey()],
    ['events', await alice.client.get(`${E}/${alice.conversationId}/events/count`)],
    ['settings', await alice.client.get('/api/settings')],
    ['secrets', await alice.client.get('/api/secrets')],
    ['keys', await alice.client.get('/api/v1/api-keys')],
    ['account', await alice.client.get('/api/v1/users/me')],
    ['automations', jsonList(await alice.client.get(AUTOMATIONS), 'automations')],
    ['webhooks of hosts', await alice.client.get(`${AUTOMATIONS}/webhooks`)],
    ['webhook endpoints', await alice.client.get(ENDPOINTS)],
  ];
  return things.map((thing) =>
    JSON.stringify(thing, (name, value: unknown) => (name === 'last_used_at' ? 'any' : value)),
  );
}
