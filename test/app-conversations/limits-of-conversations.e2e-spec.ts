import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { jsonAt } from '@slipway/common/json-access.js';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { type StartRequest, StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { builtRequest } from '../support/built-request.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { useGitHosts } from '../support/use-git-hosts.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { SettingsClient } from '../support/settings-client.js';
import { TokensClient } from '../support/tokens-client.js';

const OWN = { selected_repository: 'octo/app', git_provider: 'github' as const };
const ALL = ['BITBUCKET_TOKEN', 'DEPLOY_KEY', 'GITHUB_TOKEN', 'GITLAB_TOKEN'];
const SERVERS = ['github', 'gitlab', 'bitbucket'] as const;
type Server = (typeof SERVERS)[number];

const { hosts, app } = useGitHosts();
let rows: ConversationRows;
let user: TestUser;

beforeAll(async () => {
  rows = new ConversationRows(app);
  user = await app.createUser();
  await new TokensClient(app, user).post(hosts.tokens);
  await request(app.url)
    .post('/api/secrets')
    .set(user.headers)
    .send({ name: 'DEPLOY_KEY', value: 'deploy-value' })
    .expect(201);
  await new SettingsClient(app, user).store({ llm_model: 'openai/scripted', llm_api_key: 'sk-1' });
});

describe('what an agent gets of the git tokens', () => {
  it.each<[Partial<StartRequest>, string[], readonly Server[], Server | null]>([
    [{}, ALL, SERVERS, null],
    [{ git: 'write' }, ALL, SERVERS, null],
    [{ secret_names: [] }, [], [], 'github'],
    [{ secret_names: ['DEPLOY_KEY'] }, ['DEPLOY_KEY'], [], 'github'],
    [{ secret_names: ['GITHUB_TOKEN'] }, ['GITHUB_TOKEN'], ['github'], null],
    [{ secret_names: ['GITLAB_TOKEN'] }, ['GITLAB_TOKEN'], ['gitlab'], 'github'],
    [{ git: 'read' }, ['DEPLOY_KEY'], [], 'github'],
    [{ git: 'read', secret_names: ['GITHUB_TOKEN'] }, [], [], 'github'],
    [{ git: 'none' }, ['DEPLOY_KEY'], [], null],
    [{ git: 'read', selected_repository: null }, ['DEPLOY_KEY'], [], null],
  ])('%j', async (limits, variables, shown, own) => {
    const given = sampleStartRequest({ ...OWN, ...limits });
    const sent = await builtRequest(app, user, given);
    expect(Object.keys(Object(jsonAt(sent, 'body', 'secrets'))).toSorted()).toEqual(variables);
    const git = Object(jsonAt(sent, 'body', 'slipway', 'git'));
    const expected = [
      ...shown.map((name) => ({ origin: hosts[name].origin })),
      ...(own === null
        ? []
        : [{ origin: hosts[own].origin, repository: `${hosts[own].origin}/octo/app.git` }]),
    ];
    expect(git.credentials).toEqual(
      expected.map((each) => ({ ...each, username: expect.any(String), password: expect.any(String) })),
    );
    expect([git.mode, git.expose]).toEqual([limits.git ?? 'write', shown.length > 0]);

    const { selected_repository: selectedRepository, git_provider: gitProvider } = given;
    const { id } = await rows.conversation(user.id, { selectedRepository, gitProvider });
    await rows.startTask(user.id, { appConversationId: id, status: 'READY', request: given });
    const again = await app.app.get(CredentialsBuilder).build({ id, userId: user.id });
    expect(again.git).toEqual(git);
    expect(Object.keys(Object(again.secrets)).toSorted()).toEqual(variables);
  });

  it.each(['read', 'write', 'none'] as const)(
    'is that of the fork it works in, too, with git: %s',
    async (git) => {
      const head = {
        repository: 'mona/app',
        number: 12,
        branch: 'parser',
        targetBranch: 'main',
        ref: null,
        allowsMaintainers: false,
      };
      const work_place = { head, push: git === 'write' ? ('head' as const) : ('none' as const) };
      const sent = await builtRequest(app, user, { ...OWN, git, secret_names: [], work_place });
      const places = git === 'none' ? [] : ['octo/app', 'mona/app'];
      const { origin } = hosts.github;
      expect(jsonAt(sent, 'body', 'slipway', 'git')).toMatchObject({
        mode: git,
        expose: false,
        credentials: places.map((name) => ({ origin, repository: `${origin}/${name}.git` })),
      });
    },
  );

  it('is nothing but its variables where the agent server is of others', async () => {
    const sent = await builtRequest(app, user, { ...OWN, git: 'read', dialect: 'stock' });
    expect(Object.keys(Object(jsonAt(sent, 'body', 'secrets')))).toEqual(['DEPLOY_KEY']);
    expect(JSON.stringify(sent)).not.toContain(hosts.worlds.github.token);
  });
});

describe('a part of a conversation', () => {
  const parentWith = async (limits: Partial<StartRequest>, cost = 0) => {
    const sandbox = await rows.sandbox(user.id);
    const metrics = {
      model_name: 'm',
      accumulated_cost: cost,
      max_budget_per_task: 5,
      accumulated_token_usage: null,
    };
    const members = { sandboxId: sandbox.id, selectedRepository: 'octo/app', gitProvider: 'github' as const };
    const row = await rows.conversation(user.id, members, { metrics });
    const given = sampleStartRequest({ ...OWN, ...limits });
    const ids = { appConversationId: row.id, sandboxId: sandbox.id };
    await rows.startTask(user.id, { ...ids, status: 'READY', request: given });
    return row;
  };
  const start = (body: object): request.Test =>
    request(app.url).post('/api/v1/app-conversations').set(user.headers).send(body);

  it('may at most what the whole may', async () => {
    const parent = await parentWith({ secret_names: ['DEPLOY_KEY'], git: 'read', agent_type: 'plan' }, 1);
    const given = { secret_names: ['DEPLOY_KEY', 'OTHER'], git: 'write', agent_type: 'default' };
    const { body } = await start({ ...given, parent_conversation_id: parent.hex }).expect(200);
    expect(body.request).toMatchObject({ secret_names: ['DEPLOY_KEY'], git: 'read', agent_type: 'plan' });
    const { request: stored } = await app.dataSource
      .getRepository(StartTask)
      .findOneByOrFail({ id: body.id });
    expect(stored.max_budget).toBe(4);
  });

  it('is refused where nothing is left of the budget', async () => {
    const parent = await parentWith({}, 5);
    const { body } = await start({ parent_conversation_id: parent.hex }).expect(402);
    expect(body.code).toBe('budget_exceeded');
  });

  it.each([
    [{ git: 'read' as const }, 422],
    [{ secret_names: [] }, 422],
    [{}, 200],
  ])('has no other repository than the whole with %j', async (limits, status) => {
    const parent = await parentWith(limits);
    const elsewhere = { selected_repository: 'octo/secret', parent_conversation_id: parent.hex };
    await start({ ...elsewhere, git_provider: 'github' }).expect(status);
    const sameName = { selected_repository: 'octo/app', parent_conversation_id: parent.hex };
    await start({ ...sameName, git_provider: 'gitlab' }).expect(status);
    await start(sameName).expect(200);
  });
});
