import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import request from 'supertest';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { builtRequest } from '../support/built-request.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { TokensClient } from '../support/tokens-client.js';
import { useTestApp } from '../support/use-test-app.js';

const VALUES = {
  GITHUB_TOKEN: 'ghp_thetokenofgithub51802',
  DEPLOY_KEY: 'thecustomsecret51802',
  llm_api_key: 'sk-thekeyofthemodel51802',
  search_api_key: 'tvly-thekeyofthesearch51802',
  header: 'theheaderofaserver51802',
  api_key: 'thekeyofaserver51802',
  env: 'thevariableofacommand51802',
  query: 'thequeryofaserver51802',
  own: 'thesecretoftherequest51802',
};
const MCP_KEYS = ['header', 'api_key', 'env', 'query'] as const;

describe('what an agent of the operator’s list is given', () => {
  let folder: string;
  let user: TestUser;

  const list = (): string => path.join(folder, 'agents.json');

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'agents-'));
    const agent = (name: string, secrets: string[]) => ({ name, command: 'agent', secrets });
    const env = { KEY: '${llm_api_key}', SEARCH: '${search_api_key}', MODEL: '${llm_model}' };
    await writeFile(
      list(),
      JSON.stringify([
        agent('nothing', []),
        agent('git', ['git_tokens']),
        agent('token', ['GITHUB_TOKEN']),
        agent('servers', ['mcp_keys']),
        { ...agent('keys', ['llm_api_key', 'search_api_key']), env },
        agent('custom', ['DEPLOY_KEY', 'OWN']),
      ]),
    );
  });
  // No server listens there: tokens are stored without a verdict.
  const app = useTestApp(() => ({ ACP_AGENTS_FILE: list(), GITHUB_API_URL: 'http://127.0.0.1:1' }));

  beforeAll(async () => {
    user = await app.createUser();
    await new TokensClient(app, user).postTokens({ github: { token: VALUES.GITHUB_TOKEN } });
    const post = (route: string, body: object): request.Test =>
      request(app.url).post(route).set(user.headers).send(body);
    await post('/api/secrets', { name: 'DEPLOY_KEY', value: VALUES.DEPLOY_KEY }).expect(201);
    await post('/api/settings', {
      llm_model: 'openai/scripted',
      llm_api_key: VALUES.llm_api_key,
      search_api_key: VALUES.search_api_key,
    }).expect(200);
    await post('/api/v1/settings', {
      agent_settings_diff: {
        mcp_config: {
          open: { url: 'https://open.example.com/mcp', transport: 'http' },
          plain: { command: 'plain', args: ['--stdio'] },
          header: {
            url: 'https://header.example.com/mcp',
            transport: 'http',
            headers: { 'X-Key': VALUES.header },
          },
          key: { url: 'https://key.example.com/sse', transport: 'sse', api_key: VALUES.api_key },
          query: { url: `https://query.example.com/mcp?key=${VALUES.query}`, transport: 'http' },
          command: { command: 'command', env: { KEY: VALUES.env } },
        },
      },
    }).expect(200);
  });

  afterAll(() => rm(folder, { recursive: true, maxRetries: 10 }));

  async function atStart(agent: string | null, who = user, model: string | null = null): Promise<unknown> {
    return await builtRequest(app, who, { agent, llm_model: model, own: new Map([['OWN', VALUES.own]]) });
  }

  /** After a pause, a restart, or a stop for want of a key. */
  async function atRefresh(agent: string): Promise<unknown> {
    const { id } = await new ConversationRows(app).conversation(user.id, { agent, agentKind: 'acp' });
    return await app.app.get(CredentialsBuilder).build({ id, userId: user.id });
  }

  const given = (sent: unknown): string[] => {
    const text = JSON.stringify(sent);
    return Object.entries(VALUES).flatMap(([name, value]) => (text.includes(value) ? [name] : []));
  };

  it.each<[string, string[]]>([
    ['nothing', []],
    ['git', ['GITHUB_TOKEN']],
    ['token', ['GITHUB_TOKEN']],
    ['servers', [...MCP_KEYS]],
    ['keys', ['llm_api_key', 'search_api_key']],
    ['custom', ['DEPLOY_KEY', 'own']],
  ])('is what the list names: %s', async (name, expected) => {
    expect(given(await atStart(`acp:${name}`)).toSorted()).toEqual(expected.toSorted());
    // The secrets of the request are those of its start task, which there is none of.
    const refreshed = expected.filter((each) => each !== 'own').toSorted();
    expect(given(await atRefresh(`acp:${name}`)).toSorted()).toEqual(refreshed);
  });

  it('has secrets where tool servers name them, and is told of those that there are not', async () => {
    const other = await app.createUser();
    const post = (route: string, body: object): request.Test =>
      request(app.url).post(route).set(other.headers).send(body);
    await post('/api/secrets', { name: 'DEPLOY_KEY', value: VALUES.DEPLOY_KEY }).expect(201);
    // As other programs keep them.
    const mcpServers = {
      files: { command: 'npx', args: ['-y', 'files'], env: { KEY: '${secret:DEPLOY_KEY}' } },
      remote: {
        type: 'http',
        url: 'https://tools.example.com/mcp',
        headers: { Authorization: 'Bearer ${secret:DEPLOY_KEY}', 'X-Other': '${secret:NOT_THERE}' },
      },
    };
    const llm = { llm_model: 'openai/scripted', llm_api_key: VALUES.llm_api_key };
    await post('/api/settings', { ...llm, mcp_config: { mcpServers } }).expect(200);

    expect(await atStart(null, other)).toMatchObject({
      body: {
        agent: {
          mcp_config: {
            files: { command: 'npx', args: ['-y', 'files'], env: { KEY: VALUES.DEPLOY_KEY } },
            remote: {
              url: mcpServers.remote.url,
              headers: { Authorization: `Bearer ${VALUES.DEPLOY_KEY}`, 'X-Other': '${secret:NOT_THERE}' },
            },
          },
        },
      },
      notes: [expect.stringContaining('NOT_THERE')],
    });
  });

  it('has the model of the settings in its variables, whatever model the start names', async () => {
    const acp_env = { MODEL: 'openai/scripted' };

    const start = await atStart('acp:keys', user, 'openai/named');

    expect(start).toMatchObject({ body: { agent: { acp_model: 'openai/named', acp_env } } });
    expect(await atRefresh('acp:keys')).toMatchObject({ acp: { acp_env } });
  });

  it('is nothing for one that the operator has taken off the list', async () => {
    expect(given(await atRefresh('acp:removed'))).toEqual([]);
  });

  it('has credentials for git itself only with git_tokens', async () => {
    const credentials = [expect.objectContaining({ password: VALUES.GITHUB_TOKEN })];
    expect(await atRefresh('acp:git')).toMatchObject({ git: { credentials } });
    expect(await atRefresh('acp:token')).toMatchObject({ git: { credentials: [] } });
  });

  it('has the tool servers without keys, and the user is told which it has not', async () => {
    const start = await atStart('acp:nothing');
    expect(start).toMatchObject({ body: { agent: { mcp_config: expect.anything() } } });
    const text = JSON.stringify(start);
    expect(text).toContain('open.example.com');
    expect(text).toContain('"plain"');
    expect(text).toMatch(/is not given the tool servers [^:]*, which have keys/);
    expect(JSON.stringify(await atStart('acp:servers'))).not.toContain('is not given the tool servers');
  });

  it('is everything for our own', async () => {
    expect(given(await atStart('CodeActAgent'))).toEqual(Object.keys(VALUES));
  });
});
