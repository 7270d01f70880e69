import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { CredentialsRequest } from '@slipway/agent-protocol/conversation-api.js';
import type { EgressInjection } from '@slipway/egress-proxy/protocol.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { AgentSecretsReader } from '../../src/settings/secrets/agent-secrets.reader.js';
import { customSecretBinding } from '../../src/settings/secrets/custom-secret.repository.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../src/organizations/installation-organization.js';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { SandboxPlaceholder } from '../../src/v1/app-conversations/outside-credentials/placeholder.repository.js';
import { OutsideCredentials } from '../../src/v1/app-conversations/outside-credentials/outside-credentials.js';
import type { RunningSandbox } from '../../src/v1/sandboxes/sandbox.queries.js';
import type { StartRequest } from '../../src/v1/app-conversations/start-task.entity.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { egressPolicy } from '../support/egress-policy.js';
import { runningSandbox } from '../support/running-sandbox.js';
import { StartsClient } from '../support/starts-client.js';
import { useTestApp } from '../support/use-test-app.js';

const backend = new InProcessSandboxBackend();
const agents = path.join(tmpdir(), `agents-${randomUUID()}.json`);
beforeAll(async () => {
  const env = { KEY: 'key:${PAY_KEY}' };
  const keys = ['llm_api_key', 'CODER_KEY', 'search_api_key'];
  const coder = {
    command: 'coder',
    secrets: keys,
    env: {
      ANTHROPIC_API_KEY: '${llm_api_key}',
      OPENAI_API_KEY: '${CODER_KEY}',
      GEMINI_API_KEY: OPERATORS,
      SEARCH: '${search_api_key}',
    },
  };
  const list = [
    { name: 'payer', command: 'payer', secrets: ['PAY_KEY'], env },
    { name: 'coder', ...coder },
    { name: 'unknown', command: 'own', secrets: ['llm_api_key'], env: { OWN_KEY: 'key ${llm_api_key}' } },
    { name: 'inside', ...coder, credentials: 'inside' },
  ];
  await writeFile(agents, JSON.stringify(list));
});
afterAll(async () => rm(agents));
const app = useTestApp(
  {
    SANDBOX_CREDENTIALS: 'outside',
    SANDBOX_EGRESS: '{}',
    SANDBOX_NETWORK: 'isolated',
    ACP_AGENTS_FILE: agents,
  },
  { sandboxBackend: backend },
);

const VALUE = 'sk_live_0123456789abcdefghij';
const OTHER_VALUE = 'sk_live_9876543210abcdefghij';
const NEXT_VALUE = 'sk_live_5555555555abcdefghij';
const OPERATORS = 'AIzaSyOfTheOperator0123456789abcdefghi';
const LLM = { llm_model: 'openai/m', llm_api_key: 'sk-abcdefghijklmnop0123456789' };

let owner: TestUser;

const send = (method: 'post' | 'put' | 'delete', route: string, body?: object): request.Test =>
  request(app.url)[method](route).set(owner.headers).send(body);
const store = async (secret: object): Promise<void> => {
  await send('post', '/api/v1/secrets', secret).expect(201);
};
const settings = async (members: object): Promise<void> => {
  await send('post', '/api/settings', members).expect(200);
};
const started = async (given: Partial<StartRequest> = {}): Promise<RunningSandbox> => {
  const starts = new StartsClient(app, owner);
  const { sandboxId } = await starts.reached(await starts.start(given), 'READY');
  return await runningSandbox(app, sandboxId);
};
const injections = async ({ sandboxId }: RunningSandbox, value = VALUE): Promise<EgressInjection[]> =>
  (await egressPolicy(app, backend, sandboxId)).injections.filter((each) => each.value === value);
const asked = async ({ sandboxId, sessionKey }: RunningSandbox, name: string): Promise<string> =>
  (
    await request(app.url)
      .get(`/api/v1/sandboxes/${sandboxId}/settings/secrets/${name}`)
      .set({ 'X-Session-API-Key': sessionKey })
      .expect(200)
  ).text;
/** What its agent server is given again. */
const given = async (target: RunningSandbox, agent: string | null = null): Promise<CredentialsRequest> => {
  const outside = app.app.get(OutsideCredentials, { strict: false });
  const builder = app.app.get(CredentialsBuilder, { strict: false });
  const kind = agent === null ? {} : { agent, agentKind: 'acp' as const };
  const { id } = await new ConversationRows(app).conversation(owner.id, kind);
  const conversation = { id, userId: owner.id };
  const built = await builder.build(conversation, true, { shown: outside.shownSecrets(target, agent) });
  const use = agent === null ? null : { agent, profile: null, model: null };
  return await (await outside.concealer(target, use)).update(built);
};

beforeEach(async () => {
  owner = await app.createUser();
  await settings(LLM);
});

describe('a secret with hosts', () => {
  it('is a placeholder in a sandbox, and its value is put in by its rule, as that is now, until it is deleted', async () => {
    await store({ name: 'EMPTIED', value: OTHER_VALUE, hosts: ['api.stripe.com'] });
    await store({
      name: 'STRIPE_KEY',
      value: VALUE,
      hosts: ['API.stripe.com', 'http://stripe.example:8080'],
      inject: { header: 'X-Key', format: 'key {}' },
      methods: ['GET'],
      paths: ['/v1/*'],
    });
    const target = await started();
    const shown = await asked(target, 'STRIPE_KEY');
    expect(shown).toMatch(/^sk_[\w]{25}$|^slipway-[\w]+$/);
    expect(await injections(target)).toEqual([
      {
        placeholder: shown,
        value: VALUE,
        hosts: [
          { host: 'api.stripe.com', methods: ['GET'], paths: ['/v1/*'] },
          { host: 'stripe.example', port: 8080, http: true, methods: ['GET'], paths: ['/v1/*'] },
        ],
        headers: ['x-key'],
        format: 'key {}',
      },
    ]);
    const { secrets } = await given(target);
    expect(secrets).toMatchObject({ STRIPE_KEY: { value: shown } });

    expect(await injections(target, OTHER_VALUE)).toHaveLength(1);
    // A replica of the release before may have emptied a value.
    const cipher = app.app.get(SecretCipher, { strict: false });
    await app.dataSource.query(
      "UPDATE custom_secrets SET value = $2 WHERE user_id = $1 AND name = 'EMPTIED'",
      [owner.id, cipher.encrypt('', customSecretBinding(owner.id, 'EMPTIED'))],
    );
    expect(await injections(target)).toHaveLength(1);

    // It counts as it is stored now.
    const path = '/api/v1/secrets/STRIPE_KEY';
    await send('put', path, { name: 'STRIPE_KEY', value: NEXT_VALUE, hosts: ['b.example'] }).expect(200);
    const next = { placeholder: shown, hosts: [{ host: 'b.example' }] };
    expect(await injections(target, NEXT_VALUE)).toMatchObject([next]);
    await send('put', path, { name: 'STRIPE_KEY', hosts: null }).expect(200);
    expect(await injections(target, NEXT_VALUE)).toEqual([]);
    expect(await asked(target, 'STRIPE_KEY')).toBe(NEXT_VALUE);
    await store({ name: 'STRIPE_KEY', value: VALUE, hosts: ['a.example'] });
    expect(await injections(target)).toMatchObject([{ placeholder: shown }]);
    await send('delete', path).expect(200);
    expect(await injections(target)).toEqual([]);
  });

  it('keeps the placeholder that its user chose in every sandbox, and for itself', async () => {
    const placeholder = `xoxb-${owner.id}`;
    await store({ name: 'SLACK', value: VALUE, hosts: ['slack.com'], placeholder });
    const [one, other] = [await started(), await started()];
    expect(one.sandboxId).not.toBe(other.sandboxId);
    expect([await asked(one, 'SLACK'), await asked(other, 'SLACK')]).toEqual([placeholder, placeholder]);
    owner = await app.createUser();
    await settings(LLM);
    expect(await injections(await started())).toEqual([]);
  });

  it('has a random one where the chosen one stands for another credential of the sandbox', async () => {
    await store({ name: 'ONE', value: VALUE, hosts: ['a.example'] });
    const target = await started();
    const placeholder = await asked(target, 'ONE');
    await store({ name: 'TWO', value: OTHER_VALUE, hosts: ['b.example'], placeholder });
    app.clock.waits.length = 0;
    const other = await asked(target, 'TWO');
    expect(app.clock.waits).toEqual([3_000]);
    expect(other).not.toBe(placeholder);
    expect(await injections(target)).toMatchObject([{ placeholder }]);
    expect(await injections(target, OTHER_VALUE)).toMatchObject([{ placeholder: other }]);
  });

  it('is not put in for a sandbox whose conversations may not see it', async () => {
    const placeholder = `hidden-${owner.id}`;
    await store({ name: 'HIDDEN', value: VALUE, hosts: ['a.example'], placeholder });
    await store({ name: 'SHOWN', value: OTHER_VALUE, hosts: ['a.example'] });
    const target = await started({ secret_names: ['SHOWN'] });
    expect(await injections(target)).toEqual([]);
    expect(await injections(target, OTHER_VALUE)).toHaveLength(1);
  });

  it('is its own placeholder in all that tools, tool servers and agents are told by a name of it', async () => {
    await store({ name: 'SAME', value: LLM.llm_api_key, hosts: ['a.example'] });
    await store({ name: 'PAY_KEY', value: VALUE, hosts: ['a.example'] });
    await store({ name: 'GITHUB_TOKEN', value: OTHER_VALUE, hosts: ['github.example'] });
    await store({ name: 'SHORT', value: 'hush', hosts: ['a.example'] });
    await settings({
      mcp_config: {
        stdio_servers: [
          { name: 'files', command: 'files', args: ['--key=${secret:SHORT}'], env: { K: '${secret:SHORT}' } },
        ],
        shttp_servers: [{ url: 'https://a.example/mcp', api_key: '${secret:SHORT}' }],
      },
    });
    const target = await started();

    const same = await asked(target, 'SAME');
    const all = await injections(target, LLM.llm_api_key);
    expect(new Set(all.map(({ hosts }) => hosts[0]?.host))).toEqual(new Set(['a.example', 'api.openai.com']));
    expect(all.find(({ placeholder }) => placeholder === same)?.hosts).toEqual([{ host: 'a.example' }]);
    const short = await asked(target, 'SHORT');
    expect((await given(target)).mcp_config).toMatchObject({
      files: { args: [`--key=${short}`], env: { K: short } },
      shttp_0: { headers: { Authorization: `Bearer ${short}` } },
    });
    const paying = await asked(target, 'PAY_KEY');
    expect((await given(target, 'acp:payer')).secrets).toMatchObject({
      PAY_KEY: { value: paying },
      KEY: { value: `key:${paying}` },
    });
    // The SDK has another name for git tokens.
    expect(await asked(target, 'github_token')).toBe(await asked(target, 'GITHUB_TOKEN'));
    expect(await asked(target, 'github_token')).not.toContain(OTHER_VALUE);
  });
});

describe('keys of an agent of the operator’s list', () => {
  const SEARCH = 'tvly-0123456789abcdefgh';
  const hostsOf = async (target: RunningSandbox, value: string): Promise<unknown> =>
    (await injections(target, value)).map(({ placeholder, hosts, headers }) => [
      placeholder.length,
      hosts,
      headers.includes('x-api-key'),
    ]);

  beforeEach(async () => {
    await store({ name: 'CODER_KEY', value: OTHER_VALUE });
    await settings({ search_api_key: SEARCH });
  });

  it('are placeholders of their form, which become values towards the hosts that its variables are for', async () => {
    const target = await started({ agent: 'acp:coder' });
    const { secrets, acp } = await given(target, 'acp:coder');
    const sent = JSON.stringify({ secrets, acp });
    for (const value of [LLM.llm_api_key, OTHER_VALUE, OPERATORS, SEARCH]) {
      expect(sent).not.toContain(value);
    }
    expect(secrets).toMatchObject({
      ANTHROPIC_API_KEY: { value: expect.stringMatching(/^sk-[a-z0-9]{26}$/) },
    });
    expect(acp?.acp_env).toMatchObject({ GEMINI_API_KEY: expect.stringMatching(/^AIza[\w]{34}$/) });
    expect(await hostsOf(target, LLM.llm_api_key)).toEqual([
      [29, [{ host: 'api.anthropic.com', paths: ['/v1/*'] }], true],
    ]);
    expect(await hostsOf(target, OTHER_VALUE)).toEqual([
      [28, [{ host: 'api.openai.com', paths: ['/v1/*'] }], true],
    ]);
    expect(await hostsOf(target, OPERATORS)).toEqual([
      [38, [{ host: 'generativelanguage.googleapis.com', paths: ['/*'] }], true],
    ]);
    expect(await hostsOf(target, SEARCH)).toEqual([[23, [{ host: 'api.tavily.com', paths: ['/*'] }], false]]);
    // What was there before its start, so that nothing waits for proxies.
    expect(await given(target, 'acp:coder')).toMatchObject({ secrets });
    await settings({ llm_api_key: `${LLM.llm_api_key}-changed` });
    expect(await injections(target, `${LLM.llm_api_key}-changed`)).toHaveLength(1);
    expect(await asked(target, 'CODER_KEY')).not.toContain(OTHER_VALUE);
  });

  it('open those hosts by path for themselves, and their owner allows them once where only a start denies them', async () => {
    const egress = { default: 'allow', deny: ['api.anthropic.com'] };
    const { sandboxId } = await started({ agent: 'acp:coder', egress });
    const { layers } = await egressPolicy(app, backend, sandboxId);
    const host = { host: 'api.anthropic.com', paths: ['/v1/*'], isOwn: true };
    expect(layers[0]?.allow).toContainEqual(host);
    const allow = `/api/v1/sandboxes/${sandboxId}/egress/allow`;
    await send('post', allow, { host: host.host, once: true }).expect(200);
    await send('post', allow, { host: 'other.example', once: true }).expect(403);
  });

  it.each([
    ['unknown', /acp:unknown has llm_api_key in its sandbox, in clear: .* to which host/],
    ['inside', /acp:inside has llm_api_key, CODER_KEY, search_api_key in its sandbox, in clear: .* no proxy/],
  ])('are in its sandbox where they cannot be outside, and the start says so: %s', async (name, words) => {
    const starts = new StartsClient(app, owner);
    const { notes, sandboxId } = await starts.reached(await starts.start({ agent: `acp:${name}` }), 'READY');
    expect(notes.join('\n')).toMatch(words);
    const target = await runningSandbox(app, sandboxId);
    expect(JSON.stringify(await given(target, `acp:${name}`))).toContain(LLM.llm_api_key);
    expect(await injections(target, LLM.llm_api_key)).toEqual([]);
  });
});

describe('what the organization shares', () => {
  const SECRETS = `/api/organizations/${INSTALLATION_ORGANIZATION_ID}/secrets`;
  const SETTINGS = `/api/organizations/${INSTALLATION_ORGANIZATION_ID}/settings`;
  const KEY = 'sk-oftheorganization0123456789';
  const asAdmin = (method: 'post' | 'put' | 'patch' | 'delete', route: string, body?: object): request.Test =>
    request(app.url)[method](route).set(app.admin.headers).send(body);

  beforeEach(async () => {
    owner = await app.createUser();
    await asAdmin('post', SECRETS, { name: 'TEAM', value: VALUE, hosts: ['a.example'] }).expect(201);
    await asAdmin('patch', SETTINGS, {
      llm_model: 'openai/m',
      llm_api_key: KEY,
      llm_base_url: 'https://llm.example.com/v1',
    }).expect(200);
  });

  afterEach(async () => {
    await asAdmin('delete', `${SECRETS}/TEAM`).expect(204);
    await asAdmin('patch', SETTINGS, { llm_model: '', llm_api_key: '', llm_base_url: '' }).expect(200);
  });

  const placesOf = async (target: RunningSandbox, value: string): Promise<unknown> =>
    (await injections(target, value)).map(({ hosts }) => hosts.map(({ host }) => host));

  it('stays outside of the sandboxes of members, and goes to its hosts alone, whatever a member sets', async () => {
    const target = await started();
    const sent = await given(target);
    const [injection] = await injections(target);

    expect(JSON.stringify(sent)).not.toContain(VALUE);
    expect(sent.secrets).toMatchObject({ TEAM: { value: injection?.placeholder } });
    expect(await placesOf(target, VALUE)).toEqual([['a.example']]);
    expect(await placesOf(target, KEY)).toEqual([['llm.example.com']]);
    await asAdmin('put', `${SECRETS}/TEAM`, { hosts: ['b.example'] }).expect(200);
    expect(await placesOf(target, VALUE)).toEqual([['b.example']]);

    await settings({
      llm_base_url: 'https://mine.example/v1',
      llm_model: 'openai/m',
      mcp_config: { shttp_servers: [{ url: 'https://mine.example/mcp', api_key: '${secret:TEAM}' }] },
    });
    const other = await started();
    for (const each of [target, other]) {
      expect(await placesOf(each, KEY)).toEqual([]);
      expect(await placesOf(each, VALUE)).toEqual([['b.example']]);
      expect(JSON.stringify(await given(each))).not.toContain(VALUE);
    }

    await store({ name: 'TEAM', value: OTHER_VALUE, hosts: ['mine.example'] });
    expect(await placesOf(target, VALUE)).toEqual([]);
    expect(await placesOf(target, OTHER_VALUE)).toEqual([['mine.example']]);
  });
});

describe('keys of tool servers that have an address, and of the search', () => {
  const KEYS = {
    bearer: 'lin_api_0123456789abcdef',
    header: '0123456789abcdef0123',
    query: 'exa-0123456789abcdef',
    search: 'tvly-0123456789abcdef',
    command: 'cmd-0123456789abcdef',
  };

  async function begun(): Promise<RunningSandbox> {
    await store({ name: 'TEAM_KEY', value: KEYS.header });
    await settings({
      search_api_key: KEYS.search,
      mcp_config: {
        sse_servers: [{ url: `https://exa.example/sse?exaKey=${KEYS.query}&v=1`, api_key: null }],
        shttp_servers: [{ url: 'https://linear.example:8443/mcp', api_key: KEYS.bearer }],
        stdio_servers: [{ name: 'files', command: 'files', env: { KEY: KEYS.command } }],
      },
    });
    const headers = { 'X-Team': '${secret:TEAM_KEY}', Accept: 'application/json' };
    const mcp_config = { team: { url: 'http://team.example/mcp', headers } };
    await send('post', '/api/v1/settings', { agent_settings_diff: { mcp_config } }).expect(200);
    return await started();
  }

  it('are placeholders, which become values towards their own server alone, and none once that has gone', async () => {
    const target = await begun();
    const { mcp_config: servers, search_api_key: search } = await given(target);
    const sent = JSON.stringify({ servers, search });
    for (const key of [KEYS.bearer, KEYS.header, KEYS.query, KEYS.search]) {
      expect(sent).not.toContain(key);
    }
    expect(sent).toContain(KEYS.command);
    expect(servers).toMatchObject({ team: { headers: { Accept: 'application/json' } } });
    const places = async (key: string): Promise<unknown> =>
      (await injections(target, key)).map(({ placeholder, hosts, headers, query }) => [
        sent.includes(placeholder),
        hosts,
        headers,
        query,
      ]);
    expect(await places(KEYS.bearer)).toEqual([
      [
        true,
        [{ host: 'linear.example', port: 8443, paths: ['/mcp', '/mcp/*'] }],
        ['authorization'],
        undefined,
      ],
    ]);
    expect(await places(KEYS.header)).toEqual([
      [true, [{ host: 'team.example', http: true, paths: ['/mcp', '/mcp/*'] }], ['x-team'], undefined],
    ]);
    expect(await places(KEYS.query)).toEqual([
      [true, [{ host: 'exa.example', paths: ['/*'] }], [], ['exaKey']],
    ]);
    expect(await places(KEYS.search)).toEqual([
      [true, [{ host: 'api.tavily.com', paths: ['/*'] }], ['authorization'], undefined],
    ]);
    expect(await injections(target, KEYS.command)).toEqual([]);

    const [before] = await injections(target, KEYS.bearer);
    const changed = { url: 'https://linear.example:8443/mcp', api_key: `${KEYS.bearer}-new` };
    await settings({
      mcp_config: { shttp_servers: [{ url: 'https://first.example/', api_key: null }, changed] },
    });
    expect(await injections(target, changed.api_key)).toMatchObject([{ placeholder: before?.placeholder }]);
    const kept = async (): Promise<number> =>
      await app.dataSource.getRepository(SandboxPlaceholder).countBy({ sandboxId: target.sandboxId });
    const all = await kept();
    await settings({ mcp_config: {}, search_api_key: '' });
    expect(await injections(target, changed.api_key)).toEqual([]);
    expect(await injections(target, KEYS.search)).toEqual([]);
    expect((await started({ sandbox_id: target.sandboxId })).sandboxId).toBe(target.sandboxId);
    expect(all - (await kept())).toBe(4);
  });
});

it('puts the value of a secret of the setup in until that is over', async () => {
  await settings(LLM);
  await store({ name: 'PAY_KEY', value: VALUE, hosts: ['api.pay.example.com'], phase: 'setup' });
  const target = await started();
  expect(await injections(target)).toEqual([]);

  const outside = app.app.get(OutsideCredentials, { strict: false });
  const secrets = app.app.get(AgentSecretsReader, { strict: false });
  const shown = outside.shownSecrets(target);
  const placeholder = (await secrets.forSetup(owner.id, () => true, shown)).get('PAY_KEY');
  expect(await injections(target)).toMatchObject([{ placeholder }]);
  const { waits } = app.clock;
  waits.length = 0;
  await outside.endSetup(target);
  expect(await injections(target)).toEqual([]);
  expect(waits).toEqual([3_000]);
  await outside.endSetup(target);
  expect(waits).toEqual([3_000]);
});
