import { beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import {
  CREDENTIAL_HEADER,
  EGRESS_PATHS,
  type EgressPolicy,
  policySchema,
  type ReportedRequest,
} from '@slipway/egress-proxy/protocol.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { MAX_PERMITS } from '../../src/v1/egress/egress-permit.repository.js';
import { OpenHosts } from '../../src/v1/egress/open-hosts.js';
import { PROXY_KEY } from '../../src/v1/egress/egress-proxy.keys.js';
import { EgressDenialRepository, MAX_TOLD } from '../../src/v1/events/egress-denial.repository.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { messageEvent } from '../fakes/sample-events.js';
import { ConversationRepository } from '../../src/v1/app-conversations/conversation.repository.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { type TestUser } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

const backend = new InProcessSandboxBackend();
const app = useTestApp(
  {
    SANDBOX_EGRESS: '{"default":"allow","deny":["never.example"]}',
    DEFAULT_LLM_MODEL: 'openai/m',
    DEFAULT_LLM_API_KEY: 'key-of-the-operator',
    DEFAULT_LLM_BASE_URL: 'https://models.example.com/v1',
  },
  { sandboxBackend: backend },
);

const RULES = { allow: ['npm'] };
const START_RULES = { allow: ['npm'], setup: { allow: ['npm', 'pypi'] } };
const DENIED: ReportedRequest = {
  at: '2026-11-29T10:00:00.000Z',
  host: 'pypi.org',
  port: 443,
  method: 'CONNECT',
  path: null,
  denied: 'rule',
  rule: null,
  phase: 'agent',
  status: null,
  sentBytes: 0,
  receivedBytes: 0,
  durationMs: 1,
};

let owner: TestUser;
let starts: StartsClient;

const cipher = (): SecretCipher => app.app.get(SecretCipher, { strict: false });
const asProxy = (): Record<string, string> => ({ authorization: `Bearer ${cipher().derive(PROXY_KEY)}` });
const policy = async (id: string): Promise<EgressPolicy> => {
  const credential = `${id}.${cipher().derive(`sandboxes.egress:${id}`)}`;
  const headers = { ...asProxy(), [CREDENTIAL_HEADER]: credential };
  return policySchema.parse((await request(app.url).get(EGRESS_PATHS.policy).set(headers).expect(200)).body);
};
/** Names of layers, without what is always open. */
const allowed = async (id: string): Promise<string[][]> => {
  const { layers } = await policy(id);
  const [first] = layers.map(({ allow }) => allow);
  const open = new Set((first ?? []).map(({ host }) => host));
  return layers
    .slice(1)
    .map(({ allow }) => [...new Set(allow.map(({ host }) => host))].filter((host) => !open.has(host)));
};
const report = async (sandbox: string, ...requests: ReportedRequest[]): Promise<void> => {
  await request(app.url)
    .post(EGRESS_PATHS.reports)
    .set(asProxy())
    .send({ reports: [{ sandbox, requests }] })
    .expect(204);
};
const started = async (body: object, user = owner): Promise<request.Response> =>
  request(app.url).post('/api/v1/app-conversations').set(user.headers).send(body);

beforeEach(async () => {
  owner = await app.createUser();
  starts = new StartsClient(app, owner);
});

describe('rules of a start', () => {
  it('hold in its sandbox beside those of the operator, and over a stop', async () => {
    const { sandboxId: id } = await starts.reached(await starts.start({ egress: RULES }), 'READY');
    const npm = ['registry.npmjs.org', 'registry.yarnpkg.com', 'nodejs.org'];
    expect(await allowed(id)).toEqual([npm]);
    const [floor, own] = (await policy(id)).layers;
    expect(floor).toMatchObject({ default: 'allow', deny: [{ host: 'never.example' }] });
    expect(floor).not.toHaveProperty('yieldsOnce');
    expect(own).toMatchObject({ default: 'deny', yieldsOnce: true });
    await new SandboxesClient(app.url, owner).restart(id);
    expect(await allowed(id)).toEqual([npm]);
    expect((await policy(id)).phase).toBe('agent');
  });

  it('of its setup hold until its agent begins, and never again', async () => {
    backend.gate.close();
    const task = await starts.start({ egress: START_RULES });
    const { sandboxId: id } = task;
    const hasAuthority = async (): Promise<boolean> =>
      (
        await app.dataSource.query('SELECT FROM sandboxes WHERE id = $1 AND egress_authority IS NOT NULL', [
          id,
        ])
      ).length === 1;
    await until(hasAuthority);
    expect((await policy(id)).phase).toBe('setup');
    expect((await policy(id)).maxAgeSeconds).toBe(1);
    expect((await allowed(id))[0]).toContain('pypi.org');
    const held = Promise.withResolvers<void>();
    const waits: unknown[] = [];
    const wait = jest.spyOn(app.clock, 'wait').mockImplementation(async (milliseconds) => {
      waits.push([milliseconds, (await policy(id)).phase]);
      await held.promise;
    });
    backend.gate.open();
    await until(() => waits.length > 0);
    const { status } = await starts.read(task.id);
    held.resolve();
    await starts.reached(task, 'READY');
    wait.mockRestore();
    expect([status, ...waits]).toEqual(['STARTING_CONVERSATION', [3_000, 'agent']]);
    expect((await policy(id)).phase).toBe('agent');
    expect((await allowed(id))[0]).not.toContain('pypi.org');
    await starts.reached(await starts.start({ sandbox_id: id }), 'READY');
    expect((await policy(id)).phase).toBe('agent');
  });

  it('of its setup are in no answer that is made after its end, however long it took', async () => {
    const { sandboxId: id } = await starts.reached(await starts.start({ egress: START_RULES }), 'READY');
    await app.dataSource.query("UPDATE sandboxes SET egress_setup = 'open' WHERE id = $1", [id]);
    expect((await policy(id)).phase).toBe('setup');
    const begun = Promise.withResolvers<void>();
    const slow = Promise.withResolvers<void>();
    const hosts = jest.spyOn(app.app.get(OpenHosts, { strict: false }), 'of').mockImplementation(async () => {
      begun.resolve();
      await slow.promise;
      return { open: [], git: [] };
    });
    const answer = policy(id);
    await begun.promise;
    await app.dataSource.query("UPDATE sandboxes SET egress_setup = 'closing' WHERE id = $1", [id]);
    slow.resolve();
    expect((await answer).phase).toBe('agent');
    hosts.mockRestore();
  });

  it('of its setup end with a conversation that a client begins itself', async () => {
    backend.gate.close();
    const task = await starts.start({ egress: START_RULES });
    const listed = {
      title: null,
      model: null,
      agentKind: null,
      baseUrl: '',
      workingDir: '/',
      createdAt: new Date(),
    };
    const owned = { userId: owner.id, sandboxId: task.sandboxId, sandboxGeneration: 1 };
    const conversations = app.app.get(ConversationRepository, { strict: false });
    await until(async () => (await starts.sandboxes()).length === 1);
    await conversations.transaction((manager) =>
      conversations.adopt(manager, { id: randomUUID(), ...listed }, owned),
    );
    backend.gate.open();
    await until(async () => backend.boxes.has(task.sandboxId));
    expect((await policy(task.sandboxId)).phase).toBe('agent');
    await starts.reached(task, 'READY');
  });

  it('of its setup end with a start that fails, where its sandbox stays', async () => {
    backend.failure = 'no space is left';
    const task = await starts.start({ egress: START_RULES });
    await new ConversationRows(app).conversation(owner.id, { sandboxId: task.sandboxId });
    await starts.reached(task, 'ERROR');
    backend.failure = null;
    const sandboxes = new SandboxesClient(app.url, owner);
    await sandboxes.resume(task.sandboxId);
    await sandboxes.reach(task.sandboxId, 'RUNNING');
    expect((await policy(task.sandboxId)).phase).toBe('agent');
  });

  it('are echoed as they were written, and refused in words where they are none, or the sandbox has its own', async () => {
    const wrong = await started({ egress: { allow: ['nmp', { host: 'a b' }], defalt: 'deny' } });
    expect(wrong.status).toBe(422);
    expect(wrong.text).toContain('\\"nmp\\" is no preset (npm, pypi');
    expect(wrong.body.detail.map(({ loc }: { loc: string[] }) => loc.slice(0, 2))).toContainEqual([
      'body',
      'egress',
    ]);
    expect((await started({ egress: START_RULES })).body.request.egress).toEqual(START_RULES);
    const { sandboxId } = await starts.reached(await starts.start(), 'READY');
    const beside = await started({ sandbox_id: sandboxId, egress: START_RULES });
    expect([beside.status, beside.text]).toEqual([
      422,
      expect.stringContaining('that sandbox has its rules'),
    ]);
  });

  it('hold for a child in another sandbox too', async () => {
    const parent = await starts.reached(await starts.start({ egress: RULES }), 'READY');
    const open = await starts.reached(await starts.start(), 'READY');
    const alike = await starts.reached(await starts.start({ egress: RULES }), 'READY');
    const child = async (sandboxId: string): Promise<number> =>
      (await started({ parent_conversation_id: parent.appConversationId, sandbox_id: sandboxId })).status;
    expect([await child(open.sandboxId), await child(alike.sandboxId)]).toEqual([422, 200]);
  });
});

describe('rules of settings', () => {
  it('hold from the next sandbox on, follow changes, and stay where the settings have none any more', async () => {
    const sandboxes = new SandboxesClient(app.url, owner);
    const { id: earlier } = await sandboxes.running();
    await starts.settings({ sandbox_egress: { allow: ['one.example'] } });
    const { sandboxId: id } = await starts.reached(await starts.start({ egress: RULES }), 'READY');
    expect((await policy(earlier)).layers).toHaveLength(1);
    expect((await allowed(id))[0]).toEqual(['one.example']);
    expect(await allowed(id)).toHaveLength(2);
    await starts.settings({ sandbox_egress: { allow: ['two.example'] } });
    expect((await allowed(id))[0]).toEqual(['two.example']);
    await starts.settings({ sandbox_egress: null });
    expect((await allowed(id))[0]).toEqual(['one.example']);
  });
});

describe('rules of the organization', () => {
  it('hold beside those of the user, and neither lies over the other', async () => {
    const store = async (query: string, who: TestUser, rules: object | null): Promise<void> => {
      await request(app.url)
        .post(`/api/settings${query}`)
        .set(who.headers)
        .send({ sandbox_egress: rules })
        .expect(200);
    };
    await store('?scope=organization', app.admin, { allow: ['one.example', 'two.example'] });
    await store('', owner, { allow: ['two.example', 'three.example'] });
    const { sandboxId: id } = await starts.reached(await starts.start(), 'READY');
    expect(await allowed(id)).toEqual([
      ['one.example', 'two.example'],
      ['two.example', 'three.example'],
    ]);

    await store('?scope=organization', app.admin, { allow: ['one.example'] });
    expect(await allowed(id)).toEqual([['one.example'], ['two.example', 'three.example']]);
    await store('?scope=organization', app.admin, null);
  });
});

describe('what is allowed once', () => {
  let id: string;
  let holder: TestUser;
  const allow = (host: string): request.Test =>
    request(app.url)
      .post(`/api/v1/sandboxes/${id}/egress/allow`)
      .set(holder.headers)
      .send({ host, once: true });
  const take = async (host: string): Promise<boolean> =>
    (await request(app.url).post(EGRESS_PATHS.once).set(asProxy()).send({ sandbox: id, host }).expect(200))
      .body.allowed;

  beforeAll(async () => {
    holder = await app.createUser();
    const begun = new StartsClient(app, holder);
    ({ sandboxId: id } = await begun.reached(await begun.start({ egress: { allow: [] } }), 'READY'));
  });

  beforeEach(async () => {
    await app.dataSource.query('DELETE FROM egress_permits');
  });

  it('is told to proxies and used up once, whichever of them ask', async () => {
    const { body } = await allow('PyPI.org.').expect(200);
    expect(body).toEqual({ host: 'pypi.org', expires_at: expect.stringMatching(/Z$/) });
    expect((await policy(id)).once).toEqual(['pypi.org']);
    const taken = await Promise.all([take('pypi.org'), take('pypi.org'), take('pypi.org')]);
    expect(taken.filter(Boolean)).toHaveLength(1);
    expect((await policy(id)).once).toEqual([]);
    const entries = await app.dataSource.query(
      "SELECT details FROM audit_entries WHERE action = 'sandbox.egress_allow' AND resource_id = $1",
      [id],
    );
    expect(entries).toContainEqual({ details: expect.objectContaining({ host: 'pypi.org' }) });
  });

  it('ends after ten minutes', async () => {
    await allow('pypi.org:443').expect(200);
    await app.dataSource.query('UPDATE egress_permits SET expires_at = now() WHERE sandbox_id = $1', [id]);
    expect((await policy(id)).once).toEqual([]);
    expect(await take('pypi.org:443')).toBe(false);
  });

  it('is bounded', async () => {
    await app.dataSource.query(
      `INSERT INTO egress_permits (sandbox_id, host, expires_at)
       SELECT $1, 'host-' || n || '.example', now() + interval '1 minute' FROM generate_series(1, $2::int) AS n`,
      [id, MAX_PERMITS - 1],
    );
    await allow('host-0.example').expect(200);
    await allow('one-more.example').expect(409);
    await allow('host-0.example').expect(200);
  });

  it.each<[string, number, () => request.Test]>([
    ['what the operator refuses', 403, () => allow('never.example')],
    ['a port that no rule opens', 403, () => allow('pypi.org:22')],
    ['more than a host', 422, () => allow('*.example')],
    ['an address', 422, () => allow('https://pypi.org/simple')],
    ['more than once', 422, () => allow('pypi.org').send({ host: 'pypi.org', once: false })],
  ])('is not %s', async (_what, status, ask) => {
    await ask().expect(status);
    expect((await policy(id)).once).toEqual([]);
  });
});

describe('what is denied', () => {
  const told = async (conversationId: string): Promise<Record<string, unknown>[]> => {
    const { body } = await request(app.url)
      .get(`/api/v1/conversation/${conversationId}/events/search`)
      .query({ kind__eq: 'ConversationStateUpdateEvent', limit: 100 })
      .set(owner.headers)
      .expect(200);
    return body.items.filter(({ key }: { key?: string }) => key === 'EgressDenied');
  };

  it('is told to the conversations of the sandbox, once for all that is the same', async () => {
    const { sandboxId, appConversationId } = await starts.reached(await starts.start(), 'READY');
    const other = await starts.reached(await starts.start({ sandbox_id: sandboxId }), 'READY');
    await report(sandboxId, DENIED, DENIED, { ...DENIED, denied: null });
    await report(sandboxId, ...Array.from({ length: 400 }, () => DENIED));
    await report(sandboxId, { ...DENIED, method: null, rule: 'pypi.org', denied: 'address' });
    for (const id of [appConversationId, other.appConversationId]) {
      expect(await told(id)).toEqual([
        expect.objectContaining({
          kind: 'ConversationStateUpdateEvent',
          source: 'environment',
          value: {
            host: 'pypi.org',
            port: 443,
            method: 'CONNECT',
            reason: 'rule',
            rule: null,
            phase: 'agent',
          },
        }),
        expect.objectContaining({
          value: { host: 'pypi.org', port: 443, reason: 'address', rule: 'pypi.org', phase: 'agent' },
        }),
      ]);
    }
    await app.dataSource.query("UPDATE egress_denials SET at = now() - interval '11 minutes'");
    await report(sandboxId, DENIED);
    expect(await told(appConversationId)).toHaveLength(3);
  });

  it('is not told by a sandbox', async () => {
    const { appConversationId } = await starts.reached(await starts.start(), 'READY');
    const told = { key: 'EgressDenied', value: { host: 'evil.example', port: 443 } };
    const message = { ...messageEvent(randomUUID(), 'agent', 'look'), ...told };
    const kind = 'ConversationStateUpdateEvent';
    const state = { ...message, id: randomUUID(), kind, source: 'environment' } as const;
    await app.app.get(EventStore, { strict: false }).store(appConversationId, [message, state]);

    const { body } = await request(app.url)
      .get(`/api/v1/conversation/${appConversationId}/events/search?limit=100`)
      .set(owner.headers);
    const keys = body.items.flatMap(({ key, value }: Record<string, { host?: string }>) =>
      value?.host === 'evil.example' ? [key] : [],
    );
    expect(keys).toEqual(['UnverifiedEgressDenied', 'UnverifiedEgressDenied']);
  });

  it('in the setup is told as soon as there is a conversation', async () => {
    backend.gate.close();
    const task = await starts.start();
    await until(async () => (await starts.sandboxes()).length === 1);
    await report(task.sandboxId, { ...DENIED, phase: 'setup' });
    backend.gate.open();
    await starts.reached(task, 'READY');
    const events = await told(task.appConversationId);
    expect(events.map(({ value }) => value)).toEqual([expect.objectContaining({ phase: 'setup' })]);
  });

  it('while a conversation begins waits for it', async () => {
    backend.gate.close();
    const task = await starts.start();
    await until(async () => (await starts.sandboxes()).length === 1);
    const begins = app.dataSource.createQueryRunner();
    await begins.startTransaction();
    const denials = app.app.get(EgressDenialRepository, { strict: false });
    await denials.tellBegun(begins.manager, randomUUID(), task.sandboxId);
    const reported = report(task.sandboxId, { ...DENIED, phase: 'setup' });
    await untilBlocked(app.dataSource);
    await begins.commitTransaction();
    await begins.release();
    await reported;
    backend.gate.open();
    await starts.reached(task, 'READY');
    expect(await told(task.appConversationId)).toHaveLength(1);
  });

  it('is remembered within its bound, and without a deadlock, where many proxies report at once', async () => {
    const { sandboxId, appConversationId } = await starts.reached(await starts.start(), 'READY');
    const hosts = Array.from({ length: MAX_TOLD - 5 }, (_, index) => `host-${index}.example`);
    const mixed = Array.from({ length: 8 }, (_, shift) => [
      ...hosts.slice(shift * 5),
      ...hosts.slice(0, shift * 5),
      ...Array.from({ length: 9 }, (__, index) => `other-${shift}-${index}.example`),
    ]);
    await Promise.all(
      mixed.map(async (each, index) =>
        report(sandboxId, ...(index % 2 ? each : each.toReversed()).map((host) => ({ ...DENIED, host }))),
      ),
    );
    expect(await told(appConversationId)).toHaveLength(MAX_TOLD);
  });

  it('stands among the events of the agent, which go on', async () => {
    const { sandboxId, appConversationId: id } = await starts.reached(await starts.start(), 'READY');
    await report(sandboxId, DENIED);
    await request(app.url)
      .post(`/api/v1/app-conversations/${id}/send-message`)
      .set(owner.headers)
      .send({ content: [{ text: 'say hello' }], run: true })
      .expect(200);
    const sequence = async (): Promise<{ seq: number; kind: string }[]> =>
      await app.dataSource.query(
        'SELECT seq, kind FROM conversation_events WHERE conversation_id = $1 ORDER BY seq',
        [id],
      );
    await until(async () => (await sequence()).some(({ kind }) => kind === 'MessageEvent'));
    const stored = await sequence();
    expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, index) => index + 1));
  });
});
