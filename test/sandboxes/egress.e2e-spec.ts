import { beforeAll, describe, expect, it } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import request from 'supertest';
import { CREDENTIAL_HEADER, EGRESS_PATHS, policySchema } from '@slipway/egress-proxy/protocol.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { AppConfig } from '../../src/config/app-config.js';
import { MAX_KEPT } from '../../src/v1/egress/egress-request.repository.js';
import { PROXY_KEY } from '../../src/v1/egress/egress-proxy.keys.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { SettingsClient } from '../support/settings-client.js';
import { createTestDatabase } from '../support/test-database.js';
import { useTestApp } from '../support/use-test-app.js';

const backend = new InProcessSandboxBackend();
const app = useTestApp(
  {
    SANDBOX_EGRESS: '{"allow":["npm",{"host":"api.example.com","methods":["GET"]}],"deny":["evil.example"]}',
    SANDBOX_NETWORK_ALLOW: '10.20.0.0/16',
    EGRESS_PROXY_KEY: `${'n'.repeat(32)},${'o'.repeat(32)}`,
    RATE_LIMIT_PER_MINUTE: '200',
  },
  { sandboxBackend: backend },
);

const ENTRY = {
  at: '2026-11-29T10:00:00.000Z',
  host: 'registry.npmjs.org',
  port: 443,
  method: null,
  path: null,
  denied: null,
  rule: 'registry.npmjs.org',
  phase: 'agent',
  status: null,
  sentBytes: 517,
  receivedBytes: 4096,
  durationMs: 12,
};

describe('a sandbox with rules about what it may reach', () => {
  let sandboxes: SandboxesClient;
  let id: string;
  let credential: string;

  const proxyKey = (): string => app.app.get(SecretCipher, { strict: false }).derive(PROXY_KEY);
  const policy = (given: string, key: string = proxyKey()): request.Test =>
    request(app.url)
      .get(EGRESS_PATHS.policy)
      .set({ authorization: `Bearer ${key}`, [CREDENTIAL_HEADER]: given });
  const report = (body: object, key: string = proxyKey()): request.Test =>
    request(app.url)
      .post(EGRESS_PATHS.reports)
      .set({ authorization: `Bearer ${key}` })
      .send(body);
  const log = (of: string, headers: Record<string, string> = app.user.headers): request.Test =>
    request(app.url).get(`/api/v1/sandboxes/${of}/egress/log`).set(headers);

  beforeAll(async () => {
    sandboxes = new SandboxesClient(app.url, app.user);
    await new SettingsClient(app, app.user).store({
      llm_model: 'openai/gpt-4o',
      llm_base_url: 'https://models.example.com:8443/v1',
      mcp_config: { mcpServers: { tools: { url: 'https://tools.example.com/mcp' } } },
    });
    ({ id } = await sandboxes.running());
    credential = backend.boxes.get(id)?.launch.egress?.credential ?? '';
  });

  it('is started with a credential and an authority of its own', () => {
    const access = backend.boxes.get(id)?.launch.egress;
    expect(access).toMatchObject({ port: app.app.get(AppConfig).egress.port });
    expect(new X509Certificate(access?.authority ?? '')).toMatchObject({ ca: true });
  });

  it('keeps both over a stop', async () => {
    const before = backend.boxes.get(id)?.launch.egress;
    await sandboxes.call('POST', `/${id}/pause`);
    await sandboxes.reach(id, 'PAUSED');
    await policy(credential).expect(404);
    await sandboxes.call('POST', `/${id}/resume`);
    await sandboxes.reach(id, 'RUNNING');
    expect(backend.boxes.get(id)?.launch.egress).toEqual(before);
  });

  it('tells its rules to proxies that were started elsewhere, by the keys of the configuration', async () => {
    await policy(credential, 'n'.repeat(32)).expect(200);
    await policy(credential, 'o'.repeat(32)).expect(200);
    await policy(credential, 'm'.repeat(32)).expect(401);
    await policy(credential, `${'n'.repeat(32)},${'o'.repeat(32)}`).expect(401);
  });

  it('has its proxy ask for all sandboxes from one address, more often than a user may', async () => {
    for (let asked = 0; asked <= 200; asked += 50) {
      const answers = Array.from({ length: 50 }, async () => (await policy(credential)).status);
      expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
    }
  });

  it('is told by its proxy’s answers what it may reach: rules, and what an agent cannot do without', async () => {
    const { body } = await policy(credential).expect(200);
    const answer = policySchema.parse(body);
    expect(answer).toMatchObject({
      sandbox: id,
      phase: 'agent',
      injections: [],
      networks: expect.arrayContaining(['10.20.0.0/16', new URL(app.url).host]),
      layers: [{ default: 'deny', deny: [{ host: 'evil.example' }] }],
    });
    expect(answer.layers[0]?.allow).toEqual(
      expect.arrayContaining([
        { host: 'registry.npmjs.org', methods: ['GET', 'HEAD'] },
        { host: 'api.example.com', methods: ['GET'] },
        { host: 'models.example.com', port: 8443 },
        { host: 'tools.example.com' },
        { host: 'github.com' },
        { host: 'api.github.com' },
        { host: '127.0.0.1', port: Number(new URL(app.url).port) },
      ]),
    );
    expect(new X509Certificate(answer.authority.certificate).toString()).toBe(
      new X509Certificate(backend.boxes.get(id)?.launch.egress?.authority ?? '').toString(),
    );
  });

  it('opens no more than one host by each address of a user', async () => {
    const owner = await app.createUser();
    const wild = {
      llm_model: 'openai/gpt-4o',
      llm_base_url: 'https://*.example.org/v1',
      mcp_config: { mcpServers: { tools: { url: 'https://*.com/mcp' } } },
    };
    await new SettingsClient(app, owner).store(wild);
    const { id: theirs } = await new SandboxesClient(app.url, owner).running();
    const given = backend.boxes.get(theirs)?.launch.egress?.credential ?? '';
    const answer = policySchema.parse((await policy(given).expect(200)).body);
    expect(answer.layers[0]?.allow.filter(({ host }) => host.includes('*'))).toEqual([]);
  });

  it.each([
    ['no credential', () => ''],
    ['the secret of another sandbox', () => `another.${credential.split('.')[1]}`],
    ['the secret without its sandbox', () => credential.split('.')[1] ?? ''],
    ['a changed secret', () => `${credential}x`],
    // Each spelling would be a sandbox of its own to a proxy.
    ['another spelling of it', () => `${credential}.x`],
  ])('is not known by %s', async (_name, given) => {
    await policy(given()).expect(404);
  });

  it.each([
    ['a user', () => app.user.key],
    ['an administrator', () => app.admin.key],
    ['the sandbox itself', () => credential],
    ['nobody', () => 'x'],
  ])('tells its policy to proxies alone, and not to %s', async (_name, key) => {
    await policy(credential, key()).expect(401);
    await report({ reports: [] }, key()).expect(401);
  });

  it('lists what it asked for, the last ones only, to its owner', async () => {
    const many = Array.from({ length: 300 }, (_, index) => ({ ...ENTRY, durationMs: index }));
    for (let round = 0; round < 4; round += 1) {
      await report({ reports: [{ sandbox: id, requests: many }] }).expect(204);
    }
    const refused = {
      ...ENTRY,
      host: 'evil.example',
      method: 'GET',
      path: '/x',
      denied: 'rule',
      rule: 'evil.example',
    };
    await report({
      reports: [
        { sandbox: id, requests: [refused] },
        { sandbox: 'removed', requests: [ENTRY] },
      ],
    }).expect(204);

    const { body } = await log(id).expect(200);
    expect(body).toHaveLength(MAX_KEPT);
    expect(body[0]).toEqual({
      at: ENTRY.at,
      host: 'evil.example',
      port: 443,
      method: 'GET',
      path: '/x',
      denied: 'rule',
      rule: 'evil.example',
      phase: 'agent',
      status: null,
      sent_bytes: 517,
      received_bytes: 4096,
      duration_ms: 12,
    });
    expect(body[1]).toMatchObject({ denied: null, duration_ms: 299 });
    await log(id, (await app.createUser()).headers).expect(404);
    await log('unknown').expect(404);
  });

  it('has its report refused where that is none', async () => {
    await report({ reports: [{ sandbox: id, requests: [{ ...ENTRY, port: 'perhaps' }] }] }).expect(422);
    await report({ reports: 'x' }).expect(422);
  });
});

it('pauses sandboxes whose rules have come or gone, or whose credentials are elsewhere, since the service was away', async () => {
  const database = await createTestDatabase();
  const machine = new InProcessSandboxBackend();
  const RULES = { SANDBOX_EGRESS: '{}' };
  const serve = async (rules: object): Promise<TestApp> =>
    await createTestApp({ SANDBOX_CREDENTIALS: 'inside', ...rules }, database.url, {
      sandboxBackend: machine,
    });
  let service = await serve({});
  const owner = await service.createUser();
  const { id } = await new SandboxesClient(service.url, owner).running();
  const outside = { ...RULES, SANDBOX_CREDENTIALS: 'outside' };
  for (const [rules, isOnlyWay, authority] of [
    [RULES, true, null],
    [outside, true, expect.stringContaining('BEGIN CERTIFICATE')],
    [{}, undefined, undefined],
  ] as const) {
    await service.close();
    if (isOnlyWay === undefined) {
      // Other rules than before are no reason.
      service = await serve({ ...outside, SANDBOX_EGRESS: '{"deny":["evil.example"]}' });
      await service.app.get(SandboxReconciler, { strict: false }).now();
      expect(await new SandboxesClient(service.url, owner).get(id)).toMatchObject({ status: 'RUNNING' });
      await service.close();
    }
    service = await serve(rules);
    const sandboxes = new SandboxesClient(service.url, owner);
    await sandboxes.reach(id, 'PAUSED');
    await sandboxes.call('POST', `/${id}/resume`);
    await sandboxes.reach(id, 'RUNNING');
    const { egress } = machine.boxes.get(id)?.launch ?? {};
    expect([egress?.isOnlyWay, egress?.authority]).toEqual([isOnlyWay, authority]);
  }
  await service.close();
  await database.drop();
});
