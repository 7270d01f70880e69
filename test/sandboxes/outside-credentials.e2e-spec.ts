import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import type { EgressPolicy } from '@slipway/egress-proxy/protocol.js';
import { Clock } from '@slipway/common/clock.js';
import { ProviderToken } from '../../src/git-providers/tokens/provider-token.repository.js';
import { CredentialRefreshService } from '../../src/v1/app-conversations/credential-refresh.service.js';
import {
  PlaceholderRepository,
  SandboxPlaceholder,
} from '../../src/v1/app-conversations/outside-credentials/placeholder.repository.js';
import { OutsideCredentials } from '../../src/v1/app-conversations/outside-credentials/outside-credentials.js';
import type { RunningSandbox } from '../../src/v1/sandboxes/sandbox.queries.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { egressPolicy } from '../support/egress-policy.js';
import { runningSandbox } from '../support/running-sandbox.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { createTestDatabase, execute } from '../support/test-database.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

const backend = new InProcessSandboxBackend();
const app = useTestApp(
  { SANDBOX_CREDENTIALS: 'outside', SANDBOX_NETWORK: 'isolated' },
  { sandboxBackend: backend },
);

const TOKEN = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789';
const KEY = 'sk-abcdefghijklmnop0123456789';
const REPOSITORY = 'https://github.com/octo/app.git';

describe('a sandbox whose credentials stay outside', () => {
  let owner: TestUser;
  let target: RunningSandbox;

  const outside = (): OutsideCredentials => app.app.get(OutsideCredentials, { strict: false });
  const settings = async (user: TestUser, members: object): Promise<void> => {
    await request(app.url).post('/api/settings').set(user.headers).send(members).expect(200);
  };
  const startOf = async (user: TestUser): Promise<RunningSandbox> => {
    const { id } = await new SandboxesClient(app.url, user).running();
    return await runningSandbox(app, id);
  };
  const policy = async ({ sandboxId }: RunningSandbox): Promise<EgressPolicy> =>
    await egressPolicy(app, backend, sandboxId);
  const concealed = async (text: string, repositories: string[] = []): Promise<string> =>
    (await outside().concealer(target, { profile: null, model: null })).text(text, repositories);

  beforeAll(async () => {
    owner = await app.createUser();
    await settings(owner, {
      llm_model: 'openai/m',
      llm_api_key: KEY,
      llm_base_url: 'https://models.example.com:8443/v1',
    });
    await storeProviderToken(app, owner, 'github', TOKEN);
    target = await startOf(owner);
  });

  it('has a proxy, beside a network as open as without', async () => {
    expect(backend.boxes.get(target.sandboxId)?.launch.egress).toMatchObject({ isOnlyWay: false });
    expect(await policy(target)).toMatchObject({ layers: [], injections: [] });
  });

  it('has its proxy told where the value of each placeholder goes that it was sent, and of no other', async () => {
    const key = await concealed(`Bearer ${KEY}`);
    expect(key).toMatch(/^Bearer sk-[a-z0-9]{26}$/);
    expect(key).not.toContain(KEY);
    const model = {
      placeholder: key.slice('Bearer '.length),
      value: KEY,
      hosts: [{ host: 'models.example.com', port: 8443, paths: ['/v1/*'] }],
      headers: ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'],
      query: ['key'],
      model: 'openai/m',
    };
    expect((await policy(target)).injections).toEqual([model]);

    const token = await concealed(TOKEN, [REPOSITORY]);
    const { injections } = await policy(target);
    expect(injections).toHaveLength(2);
    expect(injections).toContainEqual({
      placeholder: token,
      value: TOKEN,
      hosts: [
        { host: 'github.com', paths: ['/octo/app.git/*', '/octo/app/*'] },
        { host: 'api.github.com', paths: ['/repos/octo/app', '/repos/octo/app/*'] },
        { host: 'uploads.github.com', paths: ['/repos/octo/app/*'] },
        { host: 'raw.githubusercontent.com', paths: ['/octo/app/*'] },
        { host: 'codeload.github.com', paths: ['/octo/app/*'] },
      ],
      headers: ['authorization', 'private-token'],
    });
    expect(await concealed(TOKEN)).toBe(token);
  });

  it('gets the placeholders of starts at once in one order, so that none waits for the other', async () => {
    const { id: sandboxId } = await new ConversationRows(app).sandbox(owner.id, { status: 'PAUSED' });
    const keep = async (...sources: string[]): Promise<unknown> => {
      const wanted = sources.map((source) => {
        return { source, placeholder: `${sandboxId} ${source}`, addresses: [], isChosen: false };
      });
      return await app.app.get(PlaceholderRepository, { strict: false }).keep(sandboxId, wanted);
    };
    const lock = 'SELECT FROM sandbox_placeholders WHERE sandbox_id = $1 AND source = $2 FOR UPDATE NOWAIT';
    await keep('"a"', '"b"');
    const { kept } = await app.dataSource.transaction(async (manager) => {
      await manager.query(lock, [sandboxId, '"a"']);
      const keeping = keep('"b"', '"a"');
      await untilBlocked(app.dataSource);
      await manager.query(lock, [sandboxId, '"b"']);
      return { kept: keeping };
    });

    expect(await kept).toHaveLength(2);
  });

  it('has a token put in at the host that it was stored for alone, whatever its sandbox was sent before', async () => {
    const tokens = app.dataSource.getRepository(ProviderToken);
    const stored = { userId: owner.id, provider: 'gitlab' as const };
    const hosts = async (): Promise<string[]> =>
      (await policy(target)).injections
        .filter(({ placeholder }) => placeholder === shown)
        .flatMap((each) => each.hosts.map(({ host }) => host));
    await storeProviderToken(app, owner, 'gitlab', 'glpat-abcdefghij0123456789');
    const shown = await concealed('glpat-abcdefghij0123456789', ['https://gitlab.com/octo/app.git']);
    expect(await hosts()).toEqual(['gitlab.com', 'gitlab.com']);
    await tokens.update(stored, { host: 'gitlab.com.example' });
    expect(await hosts()).toEqual([]);
    await tokens.update(stored, { host: 'gitlab.com:8443' });
    expect(await hosts()).toEqual([]);
    await tokens.delete(stored);
  });

  it('conceals the whole of a value that has another one in it, and tells a token from a key of the same text', async () => {
    const token = await concealed(TOKEN, [REPOSITORY]);
    await settings(owner, { llm_api_key: TOKEN.slice('ghp_'.length) });
    expect(await concealed(`${TOKEN} ${TOKEN.slice('ghp_'.length)}`)).toMatch(
      new RegExp(`^${token} [a-z0-9-]+$`),
    );
    await settings(owner, { llm_api_key: TOKEN });
    const concealer = await outside().concealer(target, { profile: null, model: null });
    const credential = {
      origin: 'https://github.com',
      username: 'x',
      password: TOKEN,
      repository: REPOSITORY,
    };
    const git = { credentials: [credential], expose: false, identity: null };
    const given = await concealer.update({ llm_api_key: TOKEN, git });
    expect(given.git?.credentials).toMatchObject([{ password: token }]);
    expect([TOKEN, token]).not.toContain(given.llm_api_key);
    await settings(owner, { llm_api_key: KEY });
  });

  it("shows programs in it the placeholder of a token, and of the model's key under whatever name", async () => {
    const [token, key] = [await concealed(TOKEN, [REPOSITORY]), await concealed(KEY)];
    const secret = { name: 'OTHER_NAME', value: `key=${KEY}` };
    await request(app.url).post('/api/secrets').set(owner.headers).send(secret).expect(201);
    for (const [name, value, shown] of [
      ['GITHUB_TOKEN', TOKEN, token],
      ['OTHER_NAME', KEY, `key=${key}`],
    ] as const) {
      const { text } = await request(app.url)
        .get(`/api/v1/sandboxes/${target.sandboxId}/settings/secrets/${name}`)
        .set({ 'X-Session-API-Key': target.sessionKey })
        .expect(200);
      expect(text).toContain(shown);
      expect(text).not.toContain(value);
    }
  });

  it.each([
    [
      'a profile that is gone, in whose place the settings are',
      { profile: 'gone', model: null },
      'openai/m',
      true,
    ],
    [
      'a model that is none, which the conversation has another name of',
      { profile: null, model: null },
      '',
      false,
    ],
  ])('conceals the key of %s', async (_what, source, model, hasPlace) => {
    await settings(owner, { llm_model: model });
    const shown = await (await outside().concealer(target, source)).text(KEY);
    expect(shown).toMatch(/^sk-[a-z0-9]{26}$/);
    expect(shown).not.toBe(KEY);
    const values = (await policy(target)).injections.filter(({ placeholder }) => placeholder === shown);
    expect(values.map(({ value }) => value)).toEqual(hasPlace ? [KEY] : []);
    await settings(owner, { llm_model: 'openai/m' });
  });

  it('keeps the placeholder of a conversation that names its own model, when its credentials are refreshed', async () => {
    const user = await app.createUser();
    await settings(user, { llm_api_key: KEY });
    const starts = new StartsClient(app, user);
    const own = await startOf(user);
    const task = await starts.reached(
      await starts.start({ llm_model: 'openai/own', sandbox_id: own.sandboxId }),
      'READY',
    );
    const begun = (await policy(own)).injections;
    expect(begun).toMatchObject([{ value: KEY, hosts: [{ host: 'api.openai.com' }] }]);

    const conversation = { id: task.appConversationId ?? '', userId: user.id };
    await app.app.get(CredentialRefreshService, { strict: false }).refresh(own, conversation);
    expect((await policy(own)).injections).toEqual(begun);
    const kept = await app.dataSource.getRepository(SandboxPlaceholder).findBy({ sandboxId: own.sandboxId });
    expect(kept.filter(({ source }) => source.includes('model'))).toHaveLength(1);
  });

  it('shares no placeholder with another one, of the same user or of another', async () => {
    const mine = (await policy(target)).injections.map(({ placeholder }) => placeholder);
    const other = await startOf(owner);
    const strange = await startOf(await app.createUser());
    const given = await (await outside().concealer(other, { profile: null, model: null })).text(KEY);
    expect(mine).not.toContain(given);
    expect((await policy(other)).injections.map(({ placeholder }) => placeholder)).toEqual([given]);
    await outside().prepare(strange, { profile: null, model: null });
    expect((await policy(strange)).injections).toEqual([]);
  });

  it('waits for what proxies were told where programs may be at work, and not within the first step', async () => {
    const own = await startOf(owner);
    const wait = jest.spyOn(app.app.get(Clock, { strict: false }), 'wait').mockResolvedValue();
    const reads = outside().reads(own);
    await outside().prepare(own, { profile: null, model: null }, {}, reads);
    const shown = await (await outside().concealer(own, null, reads)).text(TOKEN, [REPOSITORY]);
    expect(wait).not.toHaveBeenCalled();
    expect((await policy(own)).injections).toContainEqual(
      expect.objectContaining({ placeholder: shown, value: TOKEN }),
    );

    const other = 'https://github.com/octo/other.git';
    expect(await (await outside().concealer(own)).text(TOKEN, [other])).toBe(shown);
    expect(wait.mock.calls).toEqual([[3_000]]);
    wait.mockRestore();
  });

  it('goes on with what its user changes, and not with what is taken away', async () => {
    const placeholder = await concealed(KEY);
    const valueNow = async (): Promise<string | undefined> =>
      (await policy(target)).injections.find((each) => each.placeholder === placeholder)?.value;
    await settings(owner, { llm_api_key: `${KEY}-and-longer` });
    expect(await valueNow()).toBe(`${KEY}-and-longer`);
    await settings(owner, { llm_api_key: '' });
    expect(await valueNow()).toBeUndefined();
  });
});

it('where nothing says where credentials are, each start goes by what its replica finds on the machine, and no sandbox that runs is touched', async () => {
  const machine = new ScriptedSandboxBackend();
  const database = await createTestDatabase();
  const services: TestApp[] = [];
  let mine: SandboxesClient | undefined;
  const serve = async (obstacle: string | null): Promise<SandboxesClient> => {
    const sandboxBackend = Object.create(machine, { proxyObstacle: { value: () => obstacle } });
    // Nothing is in the way to hosts.
    const service = await createTestApp({ HTTPS_PROXY: '' }, database.url, { sandboxBackend });
    services.push(service);
    mine = new SandboxesClient(service.url, mine?.user ?? (await service.createUser()));
    return mine;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(services.splice(0).map((service) => service.close()));
  };
  const isOutside = (id: string): boolean => machine.box(id).launch.egress !== undefined;
  /** As if its replica had been killed before it saw an answer. */
  const interrupt = (id: string): Promise<unknown> =>
    execute(
      database.url,
      `UPDATE sandboxes SET status = 'STARTING', generation = 0, attempts = 1, address = NULL, due_at = created_at,
         lease_owner = 'dead', lease_until = created_at
       WHERE id = '${id}'`,
    );
  const reconcile = async (): Promise<unknown> =>
    Promise.all(services.map(({ app: each }) => each.get(SandboxReconciler, { strict: false }).now()));

  const before = await serve('no proxy there');
  const [{ id }, { id: begun }] = [await before.running(), await before.running()];
  expect([isOutside(id), isOutside(begun)]).toEqual([false, false]);
  await stop();
  await interrupt(begun);
  const after = await serve(null);
  await reconcile();
  expect([await after.get(id), machine.box(id).starts]).toMatchObject([{ status: 'RUNNING' }, 1]);
  await after.reach(begun, 'RUNNING');
  expect([isOutside(begun), machine.box(begun).starts]).toEqual([true, 2]);
  await after.restart(id);
  expect(isOutside(id)).toBe(true);

  const other = await serve('no proxy here');
  await reconcile();
  expect([await other.get(id), machine.box(id).starts]).toMatchObject([{ status: 'RUNNING' }, 2]);
  await stop();
  await interrupt(begun);
  await (await serve('no proxy here')).reach(begun, 'RUNNING');
  expect([isOutside(begun), machine.box(begun).starts]).toEqual([false, 3]);
  await stop();
  await machine.close();
  await database.drop();
});
