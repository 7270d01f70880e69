import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { operationsOf } from '@slipway/api/openapi/operations.js';
import { SCOPES } from '../../../src/common/scopes.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../../src/organizations/installation-organization.js';
import { FakeServer } from '../../fakes/fake-server.js';
import { type Attempt, attemptsOf, type Ids } from '../../support/operations-with-ids.js';
import { committedDocument } from '../../support/resolved-document.js';
import { until } from '../../support/until.js';
import { type ApiClient, text } from '../../system/journeys/support/api-client.js';
import { message, shell } from '../../system/journeys/support/script.js';
import { type Attack, held, ofService } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const AUTOMATIONS = '/api/automation/v1';
const ENDPOINTS = '/api/v1/webhook-endpoints';
const SECRET = 'a-secret-of-the-owner';
const WORDS = 'private-of-alice-30912';

/** What is read without naming anything. */
const LISTS = operationsOf(committedDocument())
  .filter(({ name }) => /^GET \/api\/[^{]*$/.test(name) && !name.includes('/stream'))
  .map(({ name }) => name.replace('GET ', ''));

/** What readers of a shared conversation are answered. */
const READ_BY_ALL = new Map([
  ['GET /api/v1/app-conversations (ids)', 200],
  ['GET /api/v1/app-conversations/search (sandbox_id__eq)', 200],
  ['GET /api/v1/app-conversations/count (sandbox_id__eq)', 200],
  ['GET /api/v1/app-conversations (sandbox_id__eq)', 200],
  ['GET /api/v1/app-conversations/{id}/download', 200],
  ['GET /api/v1/app-conversations/{id}/files', 200],
  ['GET /api/v1/app-conversations/{id}/git/changes (path)', 200],
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

/** Ids without a row. */
const NOBODYS: Ids = {
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

interface Answer {
  status: number;
  body: string;
}

/** A key of a user, by a name for what that user is. */
type Callers = Record<string, string>;

export const roles: Attack = {
  name: 'roles',
  finding: 'held',
  what: 'With the ids of all that Alice has, Bob tries each operation that names something, as a viewer, member, administrator, owner and sandbox, and looks for it in each list; the same for what another user shares.',
  expected: ofService(
    held('he is answered as for ids that nobody has, reads what is shared, and changes nothing'),
  ),
  run: async (world) => {
    const receiver = await FakeServer.start(() => ({ status: 204 }));
    try {
      const environment = { WEBHOOK_HOST_ALLOWLIST: receiver.origin };
      return await world.apart({ environment }, async (apart) => new Roles(apart, receiver.origin).attack());
    } finally {
      await receiver.close();
    }
  },
};

class Roles {
  private readonly attempts = attemptsOf(committedDocument());
  private readonly seen: string[] = [];

  constructor(
    private readonly world: HostileWorld,
    /** Takes deliveries of webhooks. */
    private readonly hooks: string,
  ) {}

  async attack(): Promise<{ held: boolean; seen: string }> {
    const { alice, bob, admin } = this.world;
    const sharer = await this.world.createUser();
    const owned = { ...(await this.converse(alice.client)), ...(await this.automate(alice.client)) };
    const shared = { ...owned, ...(await this.converse(sharer, { visibility: 'organization' })) };
    if (this.attempts.length < 80 || Object.values(owned).includes('')) {
      throw new Error('there is too little to try');
    }
    const below = { member: bob.client.key, viewer: await this.inRole('viewer') };
    const above = { administrator: await this.inRole('admin'), owner: admin.key };
    const ofNobody = this.attempts.filter(({ name }) => !OF_ADMINISTRATORS.test(name));
    await this.withoutChange(owned.user, async () => {
      await this.tryAsUnknown(this.attempts, owned, { ...below, sandbox: await bob.sessionKey() });
      await this.tryAsUnknown(ofNobody, owned, above);
    });
    await this.withoutChange(shared.user, () => this.tryShared(shared, below));
    await this.look(owned, below);
    return {
      held: this.seen.length === 0,
      seen: `${this.attempts.length} operations, ${LISTS.length} lists: ${this.seen.join(', ') || 'nothing of others'}`,
    };
  }

  /** Whatever is answered tells nothing of what is there, nor that it is there. */
  private async tryAsUnknown(attempts: Attempt[], ids: Ids, callers: Callers): Promise<void> {
    for (const attempt of attempts) {
      for (const [role, key] of Object.entries(callers)) {
        const [found, unknown] = [await this.send(attempt, ids, key), await this.send(attempt, NOBODYS, key)];
        this.note(!isDeepStrictEqual(found, unknown), `${attempt.name} as ${role} (${found.status})`);
      }
    }
  }

  private async tryShared(ids: Ids, callers: Callers): Promise<void> {
    for (const attempt of this.attempts) {
      const { name } = attempt;
      for (const [role, key] of Object.entries(callers)) {
        const { status, body } = await this.send(attempt, ids, key);
        const isRefused = status === 403 && /"code":"(?:forbidden|insufficient_scope)"/.test(body);
        const isExpected = READ_BY_ALL.has(name)
          ? status === READ_BY_ALL.get(name) && !/session_api_key":"|127\.0\.0\.1/.test(body)
          : isRefused || isDeepStrictEqual({ status, body }, await this.send(attempt, NOBODYS, key));
        this.note(!isExpected, `${name} of what is shared, as ${role} (${status})`);
      }
    }
  }

  private async look(ids: Ids, callers: Callers): Promise<void> {
    const secret = [...Object.values(ids), WORDS, SECRET];
    for (const path of LISTS) {
      for (const [role, key] of Object.entries(callers)) {
        const response = await fetch(`${this.world.url}${path}`, { headers: { 'X-Session-API-Key': key } });
        const list = await response.text();
        this.note(
          secret.some((each) => list.includes(each)),
          `${path} as ${role}`,
        );
      }
    }
  }

  private note(isSeen: boolean, what: string): void {
    if (isSeen) {
      this.seen.push(what);
    }
  }

  private async withoutChange(userId: string, work: () => Promise<void>): Promise<void> {
    const before = await this.rowsOf(userId);
    await work();
    const after = await this.rowsOf(userId);
    const changed = Object.keys(after).filter((table) => !isDeepStrictEqual(after[table], before[table]));
    this.note(changed.length > 0, `changes in ${changed.join(' and ')}`);
  }

  /** All rows of a user, by their tables, but for how far the service has followed by itself; that a key was used is noted later. */
  private async rowsOf(userId: string): Promise<Record<string, unknown>> {
    const tables = await this.world.query(
      `SELECT table_name AS name FROM information_schema.columns
       WHERE table_schema = 'public' AND column_name = 'user_id' AND table_name <> 'followed_conversations' ORDER BY 1`,
      [],
    );
    const found: Record<string, unknown> = {};
    for (const { name } of tables) {
      found[String(name)] = await this.world.query(
        `SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM "${String(name)}" t WHERE user_id = $1 ORDER BY 1`,
        [userId],
      );
    }
    return found;
  }

  /** @returns a key of a new user, which may do all that the role may */
  private async inRole(role: 'viewer' | 'admin'): Promise<string> {
    const id = await userOf(await this.world.createUser());
    const { admin } = this.world;
    const path = `/api/organizations/${INSTALLATION_ORGANIZATION_ID}/members/${id}`;
    const { status } = await admin.send('PATCH', path, { role });
    if (status !== 200) {
      throw new Error(`nobody becomes ${role}: ${status}`);
    }
    return text(await admin.post('/api/v1/api-keys', { name: role, user_id: id, scopes: SCOPES }), 'key');
  }

  /** Ids of a user, and of a conversation of theirs; nothing of it goes on by itself. */
  private async converse(client: ApiClient, members: object = {}): Promise<Ids> {
    const { id, sandboxId, taskId } = await client.started({
      ...members,
      ...message(shell(`echo ${WORDS}`)),
    });
    await client.conversationIn(id, 'finished');
    await client.post(`/api/v1/sandboxes/${sandboxId}/pause`);
    await client.sandboxIn(sandboxId, 'PAUSED');
    await until(async () => !(await this.world.runs(sandboxId)));
    const [event] = await client.events(id);
    const ofUser = { user: await userOf(client), apiKey: client.key.split('_')[1] ?? '' };
    return {
      ...NOBODYS,
      ...ofUser,
      conversation: id,
      sandbox: sandboxId,
      task: taskId,
      event: text(event, 'id'),
    };
  }

  private async automate(client: ApiClient): Promise<Partial<Ids>> {
    const webhook = { name: 'Host', source: 'own', webhook_secret: SECRET };
    const automationWebhook = text(await client.post(`${AUTOMATIONS}/webhooks`, webhook), 'id');
    const trigger = { type: 'cron', schedule: '0 9 * * *' };
    const definition = { name: WORDS, prompt: 'say hello', trigger, state: 'INACTIVE' };
    const automation = text(await client.post(`${AUTOMATIONS}/preset/prompt`, definition), 'id');
    const [run, owner] = [randomUUID(), await userOf(client)];
    await this.world.query(
      `INSERT INTO automation_runs (id, automation_id, user_id, cause, trigger_source, status, work, completed_at)
       VALUES ($1, $2, $3, 'manual:one', 'manual', 'COMPLETED', '{}', now())`,
      [run, automation, owner],
    );
    const event = { type: 'build' };
    const signature = createHmac('sha256', SECRET).update(JSON.stringify(event)).digest('hex');
    const received = await client.send('POST', `${AUTOMATIONS}/events/${owner}/own`, event, {
      'X-Signature-256': signature,
    });
    const automationEvent = text(received.body, 'event_id');
    const hook = { url: `${this.hooks}/hook`, enabled: false };
    const endpoint = text(await client.post(ENDPOINTS, hook), 'id');
    const delivery = text(await client.post(`${ENDPOINTS}/${endpoint}/test`), 'id');
    return { automation, run, automationEvent, automationWebhook, endpoint, delivery };
  }

  /** An answer without what differs from request to request, and without the ids that were asked for. */
  private async send({ method, path, body: bodyOf }: Attempt, ids: Ids, key: string): Promise<Answer> {
    const body = bodyOf?.(ids);
    const response = await fetch(`${this.world.url}${path(ids)}`, {
      method,
      headers: { 'X-Session-API-Key': key, ...(body && { 'Content-Type': 'application/json' }) },
      body: body && JSON.stringify(body),
    });
    const answered = (await textOf(response)).replace(/"request_id":"[^"]*"/, '');
    const hidden = Object.values(ids).flatMap((id) => [id, withDashes(id), id.replaceAll('-', '')]);
    return {
      status: response.status,
      body: hidden.reduce((left, id) => left.replaceAll(id, 'ID'), answered),
    };
  }
}

async function userOf(client: ApiClient): Promise<string> {
  return text(await client.get('/api/keys/current'), 'user_id');
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

function hexId(): string {
  return randomUUID().replaceAll('-', '');
}
