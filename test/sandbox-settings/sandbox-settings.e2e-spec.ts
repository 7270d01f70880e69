import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { AuditClient } from '../support/audit-client.js';
import type { TestUser } from '../support/create-test-app.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import type { StartRequest } from '../../src/v1/app-conversations/start-task.entity.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { insertSandboxRow, type SandboxRowHandle } from '../support/sandbox-rows.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { TokensClient } from '../support/tokens-client.js';
import { useTestApp } from '../support/use-test-app.js';

const ME = '/api/v1/users/me';
const MASK = '**********';

const SETTINGS = {
  language: 'de',
  llm_model: 'openai/gpt-5',
  llm_api_key: 'llm-key-of-mona',
  search_api_key: 'search-key-of-mona',
  mcp_config: {
    sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: 'mcp-key-of-mona' }],
    stdio_servers: [{ name: 'files', command: 'npx', args: ['-y'], env: { TOKEN: 'env-value-of-mona' } }],
    shttp_servers: [],
  },
};

let hosts: GitHosts;
let user: TestUser;
let sandbox: SandboxRowHandle;

beforeAll(async () => {
  hosts = await startGitHosts();
});
const app = useTestApp(() => hosts.environment);
const audit = new AuditClient(app);
afterAll(() => hosts.close());

beforeEach(async () => {
  user = await app.createUser();
  sandbox = await insertSandboxRow(app.dataSource, user.id);
});

async function storeSettings(): Promise<void> {
  await request(app.url).post('/api/settings').set(user.headers).send(SETTINGS).expect(200);
}

/** The user's key in `Authorization`, a sandbox's beside it. */
function both(who: TestUser, { key }: { key: string }) {
  return { Authorization: `Bearer ${who.key}`, 'X-Session-API-Key': key };
}

describe('GET /api/v1/users/me', () => {
  it('shows the defaults to a user who stored nothing, and what newer clients look for: nested settings, stored models and preferences', async () => {
    const own = await app.createUser();
    const get = async (headers: Record<string, string>, query = '') =>
      (await request(app.url).get(`${ME}${query}`).set(headers).expect(200)).body;
    expect(await get(own.headers)).toMatchObject({
      id: own.id,
      language: null,
      llm_api_key: null,
      enable_default_condenser: true,
      mcp_config: null,
      agent_settings: { agent: 'CodeActAgent', llm: { model: null, api_key: null }, mcp_config: {} },
      conversation_settings: { max_iterations: 500 },
      llm_profiles: { profiles: {}, active: null },
      disabled_skills: null,
      sandbox_grouping_strategy: 'NO_GROUPING',
      default_sandbox_spec_id: null,
    });
    const llm = { model: 'openai/gpt-5-mini', api_key: 'fast-key-of-mona', temperature: 0.5 };
    await request(app.url)
      .post('/api/v1/settings')
      .set(own.headers)
      .send({
        agent_settings_diff: {
          llm: {
            model: 'openai/gpt-5',
            api_key: 'llm-key-of-mona',
            aws_secret_access_key: 'aws-key-of-mona',
          },
          mcp_config: {
            files: { url: 'https://mcp.example.com', auth: { strategy: 'bearer', value: 'mcp-of-mona' } },
          },
        },
        conversation_settings_diff: { max_iterations: 7 },
        disabled_skills: ['flaky'],
        sandbox_grouping_strategy: 'ADD_TO_ANY',
        default_sandbox_spec_id: 'small',
      })
      .expect(200);
    await request(app.url).post('/api/v1/settings/profiles/fast').set(own.headers).send({ llm }).expect(201);
    const masked = await get(own.headers);
    expect(masked).toMatchObject({
      agent_settings: {
        llm: { model: 'openai/gpt-5', api_key: MASK, aws_secret_access_key: MASK },
        mcp_config: { files: { auth: { value: MASK } } },
      },
      conversation_settings: { max_iterations: 7 },
      llm_profiles: { profiles: { fast: { ...llm, api_key: MASK } }, active: null },
      disabled_skills: ['flaky'],
      sandbox_grouping_strategy: 'ADD_TO_ANY',
      default_sandbox_spec_id: 'small',
    });
    expect(JSON.stringify(masked)).not.toContain('of-mona');
    const held = await insertSandboxRow(app.dataSource, own.id);
    const exposed = await get(both(own, held), '?expose_secrets=true');
    expect(exposed).toMatchObject({
      agent_settings: {
        llm: { model: 'openai/gpt-5', api_key: 'llm-key-of-mona', aws_secret_access_key: 'aws-key-of-mona' },
        mcp_config: { files: { auth: { value: 'mcp-of-mona' } } },
      },
      llm_profiles: { profiles: { fast: llm }, active: null },
    });
    expect(exposed.llm_profiles.profiles.fast).toEqual(llm);
  });

  it('refuses the key of a sandbox alone', async () => {
    await request(app.url).get(ME).set(sandbox.headers).expect(401);
    await request(app.url).get(`${ME}?expose_secrets=true`).set(sandbox.headers).expect(401);
  });

  describe('with expose_secrets', () => {
    const expose = (headers: Record<string, string>) =>
      request(app.url).get(`${ME}?expose_secrets=true`).set(headers);

    it('alone shows keys in clear for a running sandbox of the user, and leaves an entry without a value', async () => {
      await storeSettings();
      const hidden = await request(app.url).get(ME).set(both(user, sandbox)).expect(200);
      expect(hidden.body).toMatchObject({
        language: 'de',
        llm_api_key: MASK,
        search_api_key: MASK,
        sandbox_api_key: null,
        llm_api_key_set: true,
        sandbox_api_key_set: false,
        mcp_config: {
          sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: MASK }],
          stdio_servers: [{ name: 'files', env: { TOKEN: MASK } }],
        },
      });
      expect(hidden.text).not.toContain('of-mona');
      expect(await audit.find({ owner_user_id: user.id, action: 'settings.expose' })).toEqual([]);

      const { body, headers } = await expose(both(user, sandbox)).expect(200);

      expect(body).toMatchObject({
        id: user.id,
        llm_api_key: 'llm-key-of-mona',
        search_api_key: 'search-key-of-mona',
        sandbox_api_key: null,
        mcp_config: SETTINGS.mcp_config,
      });
      expect(headers['cache-control']).toBe('no-store');
      const entries = await audit.find({ owner_user_id: user.id, action: 'settings.expose' });
      expect(entries).toMatchObject([
        {
          actor: { kind: 'user', user_id: user.id, key_id: expect.any(String) },
          resource: { type: 'settings', id: null },
          details: { sandbox_id: sandbox.id },
        },
      ]);
      expect(JSON.stringify(entries)).not.toContain('of-mona');
    });

    it('shows nothing of which no entry can be kept', async () => {
      await storeSettings();
      const { text } = await audit.whileFull(async () => expose(both(user, sandbox)).expect(500));

      expect(text).not.toContain('of-mona');
    });

    it('needs the key of a sandbox', async () => {
      await storeSettings();
      const bearer = { Authorization: `Bearer ${user.key}` };

      await expose(bearer).expect(401);
      await expose(user.headers).expect(401);
      await expose(both(user, { key: 'nobody' })).expect(401);
      await expose({ 'X-Access-Token': user.key, ...sandbox.headers }).expect(200);
    });

    it('refuses a sandbox that does not run', async () => {
      for (const status of ['STARTING', 'PAUSING', 'PAUSED', 'ERROR', 'DELETING'] as const) {
        await expose(both(user, await insertSandboxRow(app.dataSource, user.id, status))).expect(401);
      }
    });

    it("refuses another user's sandbox", async () => {
      const other = await app.createUser();
      const theirs = await insertSandboxRow(app.dataSource, other.id);
      const { body } = await expose(both(user, theirs)).expect(403);

      expect(body.detail).toBe('The sandbox belongs to another user.');
    });
  });
});

describe('GET /api/v1/sandboxes/{id}/settings/secrets', () => {
  const pathOf = ({ id }: { id: string }, name = '') => `/api/v1/sandboxes/${id}/settings/secrets${name}`;

  beforeEach(async () => {
    await request(app.url)
      .post('/api/secrets')
      .set(user.headers)
      .send({ name: 'DEPLOY_KEY', value: 'deploy "value"\n日本', description: 'For deployments' })
      .expect(201);
    await new TokensClient(app, user).postTokens({ github: hosts.tokens.provider_tokens.github });
  });

  it('lists names and descriptions', async () => {
    const { body } = await request(app.url).get(pathOf(sandbox)).set(sandbox.headers).expect(200);

    expect(body).toEqual({
      secrets: [
        { name: 'DEPLOY_KEY', description: 'For deployments' },
        { name: 'GITHUB_TOKEN', description: 'Token of the git provider github' },
      ],
    });
  });

  it.each([
    ['DEPLOY_KEY', () => 'deploy "value"\n日本'],
    ['GITHUB_TOKEN', () => hosts.worlds.github.token],
  ])('returns %s as text', async (name, value) => {
    const cause = { run_id: 'a-run', event: 'event:github:1', caused_by: 'github:71' };
    await app.dataSource.getRepository(Sandbox).update({ id: sandbox.id }, { cause });
    const { text, headers } = await request(app.url)
      .get(pathOf(sandbox, `/${name}`))
      .set(sandbox.headers)
      .expect(200);

    expect(text).toBe(value());
    const [entry] = await audit.find({ owner_user_id: user.id });
    expect(entry).toMatchObject({
      action: 'secret.expose',
      actor: { kind: 'sandbox', user_id: user.id, key_id: sandbox.id },
      resource: { type: 'secret', id: name },
      details: cause,
    });
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(headers['cache-control']).toBe('no-store');
  });

  it('returns an empty value too, and answers with problem documents', async () => {
    const empty = { name: 'EMPTY', value: '' };
    await request(app.url).post('/api/secrets').set(user.headers).send(empty).expect(201);
    const { text } = await request(app.url).get(pathOf(sandbox, '/EMPTY')).set(sandbox.headers).expect(200);
    expect(text).toBe('');
    const { body, headers } = await request(app.url)
      .get(pathOf(sandbox, '/NO_SUCH'))
      .set({ ...sandbox.headers, Accept: 'application/problem+json' })
      .expect(404);

    expect(body).toMatchObject({ code: 'not_found', detail: 'There is no secret named NO_SUCH.' });
    expect(headers['content-type']).toMatch(/^application\/problem\+json/);
    await request(app.url).get(pathOf(sandbox, '/1X')).set(sandbox.headers).expect(422);
  });

  it.each(['', '/DEPLOY_KEY'])(
    'refuses at ...secrets%s what is no running sandbox, or another one',
    async (name) => {
      for (const status of ['STARTING', 'PAUSED', 'ERROR', 'DELETING'] as const) {
        const resting = await insertSandboxRow(app.dataSource, user.id, status);
        await request(app.url).get(pathOf(resting, name)).set(resting.headers).expect(401);
      }
      const ofUser = await request(app.url).get(pathOf(sandbox, name)).set(user.headers).expect(401);
      expect(ofUser.body.detail).toContain('session_api_key of a running sandbox');
      const other = await insertSandboxRow(app.dataSource, user.id);
      const { body } = await request(app.url).get(pathOf(sandbox, name)).set(other.headers).expect(403);
      expect(body.detail).toBe('The key belongs to another sandbox.');
      await request(app.url)
        .get(pathOf({ id: 'unknown' }, name))
        .set(sandbox.headers)
        .expect(403);
    },
  );

  describe('of conversations that were started with names of secrets', () => {
    const start = (limits: Partial<StartRequest>, userId = user.id) =>
      new ConversationRows(app).startTask(userId, {
        sandboxId: sandbox.id,
        request: sampleStartRequest(limits),
      });

    const listed = async (): Promise<string[]> => {
      const { body } = await request(app.url).get(pathOf(sandbox)).set(sandbox.headers).expect(200);
      return body.secrets.map(({ name }: { name: string }) => name);
    };
    const status = async (name: string): Promise<number> =>
      (
        await request(app.url)
          .get(pathOf(sandbox, `/${name}`))
          .set(sandbox.headers)
      ).status;

    it.each<[Partial<StartRequest>[], string[]]>([
      [[{ secret_names: ['NONE'] }], []],
      [
        [{ secret_names: [] }, {}],
        ['DEPLOY_KEY', 'GITHUB_TOKEN'],
      ],
    ])('%j shows %j, and no value of another', async (all, expected) => {
      for (const limits of all) {
        await start(limits);
      }

      expect(await listed()).toEqual(expected);
      for (const name of ['DEPLOY_KEY', 'GITHUB_TOKEN']) {
        expect(await status(name)).toBe(expected.includes(name) ? 200 : 404);
      }
      // What the SDK asks for when it clones.
      expect(await status('github_token')).toBe(expected.includes('GITHUB_TOKEN') ? 200 : 404);
    });

    it.each<[string, Partial<StartRequest>[], string[]]>([
      ['one that may nothing', [{ secret_names: [] }], []],
      ['the last of several', [{ secret_names: ['DEPLOY_KEY'] }, { secret_names: [] }], []],
      ['unrestricted ones', [{}], ['DEPLOY_KEY', 'GITHUB_TOKEN']],
    ])('shows no more once %s was deleted, and one that a client began is left', async (_what, all, left) => {
      const rows = new ConversationRows(app);
      await rows.conversation(user.id, { sandboxId: sandbox.id, adopted: true });
      for (const limits of all) {
        const { appConversationId } = await rows.startTask(user.id, {
          sandboxId: sandbox.id,
          status: 'READY',
          request: { ...sampleStartRequest(), ...limits },
        });
        await request(app.url)
          .delete(`/api/v1/app-conversations/${appConversationId}`)
          .set(user.headers)
          .expect(200);
      }

      expect(await listed()).toEqual(left);
      for (const name of ['DEPLOY_KEY', 'GITHUB_TOKEN']) {
        expect(await status(name)).toBe(left.includes(name) ? 200 : 404);
      }
      await start({});
      expect(await listed()).toEqual(['DEPLOY_KEY', 'GITHUB_TOKEN']);
    });

    it('asks only the starts of its own user', async () => {
      await start({ secret_names: ['DEPLOY_KEY'] });
      await start({}, (await app.createUser()).id);

      expect(await listed()).toEqual(['DEPLOY_KEY']);
    });
  });

  it('never returns what belongs to another user', async () => {
    const theirs = await insertSandboxRow(app.dataSource, (await app.createUser()).id);
    const { body } = await request(app.url).get(pathOf(theirs)).set(theirs.headers).expect(200);

    expect(body).toEqual({ secrets: [] });
    await request(app.url).get(pathOf(theirs, '/DEPLOY_KEY')).set(theirs.headers).expect(404);
  });
});
