import { describe, expect, it } from '@jest/globals';
import { SESSION_KEY } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const server = useAgentServer(startTestAgentServer);

const patch = async (body: unknown) => await server.client.send('PATCH', '/api/settings', body);
const put = async (body: unknown) => await server.client.send('PUT', '/api/settings/secrets', body);
const ask = async (path: string, headers: Record<string, string> = {}) =>
  await server.client.fetch(`/api/settings${path}`, { headers });

describe('/api/settings', () => {
  it('has nothing at first', async () => {
    expect(await server.client.get('/api/settings')).toEqual({
      agent_settings: { agent_kind: 'openhands', mcp_config: {} },
      conversation_settings: {},
      llm_api_key_is_set: false,
      active_profile: null,
      active_agent_profile_id: null,
      active_meta_profile: null,
      misc_settings: {},
    });
  });

  it('changes what is given, removes what is null, and shows secrets only to those who ask', async () => {
    const llm = { model: 'openai/x', api_key: 'key-of-settings' };
    const mcp_config = { one: { url: 'https://one.example', headers: { Authorization: 'Bearer t0ken' } } };
    const { status, body } = await patch({ agent_settings_diff: { llm, mcp_config } });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      llm_api_key_is_set: true,
      agent_settings: {
        llm: { model: 'openai/x', api_key: '**********' },
        mcp_config: { one: { headers: { Authorization: '**********' } } },
      },
    });
    await patch({
      agent_settings_diff: { llm: { api_key: '**********', base_url: 'https://llm.example' } },
      misc_settings_diff: { theme: 'dark' },
    });
    const shown = await ask('', { 'X-Expose-Secrets': 'plaintext' });
    expect(shown.headers.get('cache-control')).toBe('no-store');
    expect(await shown.json()).toMatchObject({
      agent_settings: { llm: { ...llm, base_url: 'https://llm.example' }, mcp_config },
      misc_settings: { theme: 'dark' },
    });
    expect((await patch({ agent_settings_diff: { mcp_config: { one: null } } })).body).toMatchObject({
      agent_settings: { mcp_config: {} },
    });
  });

  it.each([
    ['nothing', {}, 400],
    ['a model that is no text', { agent_settings_diff: { llm: { model: 5 } } }, 422],
    ['more than it keeps', { misc_settings_diff: { text: 'x'.repeat(600_000) } }, 413],
  ])('refuses %s', async (_what, body, status) => {
    expect((await patch(body)).status).toBe(status);
  });

  it('refuses forms of exposure that it does not have', async () => {
    expect((await ask('', { 'X-Expose-Secrets': 'encrypted' })).status).toBe(422);
  });
});

describe('/api/settings/secrets', () => {
  it('keeps values, lists names, and gives one value at a time', async () => {
    expect(await put({ name: 'github_token', value: 'a-token', description: 'for git' })).toEqual({
      status: 200,
      body: { name: 'github_token', description: 'for git' },
    });
    await put({ name: 'OTHER', value: 'other' });
    expect(await server.client.get('/api/settings/secrets')).toEqual({
      secrets: [
        { name: 'github_token', description: 'for git' },
        { name: 'OTHER', description: null },
      ],
    });
    const one = await ask('/secrets/github_token');
    expect(one.headers.get('content-type')).toContain('text/plain');
    expect(await one.text()).toBe('a-token');
    const gone = async () => (await server.client.send('DELETE', '/api/settings/secrets/OTHER')).status;
    expect([await gone(), await gone()]).toEqual([200, 404]);
  });

  it.each([
    ['a name with a dash', { name: 'a-b', value: 'x' }],
    ['an empty value', { name: 'A', value: ' ' }],
    ['a mask', { name: 'A', value: '**********' }],
  ])('refuses %s', async (_what, body) => {
    expect((await put(body)).status).toBe(422);
  });

  it('reach the tools of a conversation by a lookup, whatever address clients have for the server', async () => {
    await put({ name: 'STORED', value: 'value-of-stored' });
    const lookup = (key: string) => ({
      kind: 'LookupSecret',
      url: 'http://agent.example/sandbox/api/settings/secrets/STORED',
      headers: { 'x-session-api-key': key },
    });
    const secrets = { STORED: lookup(SESSION_KEY), REFUSED: lookup('another-key') };
    const id = await server.client.start({ secrets });
    const answerTo = async (text: string): Promise<unknown> => await server.client.answerTo(id, text);
    expect(await answerTo('length STORED')).toBe('15');
    expect(await answerTo('length REFUSED')).toBe('undefined');
    expect(await answerTo('env STORED')).toBe('<secret-hidden>');
  });

  it('forgets everything with the server', async () => {
    await put({ name: 'A', value: 'x' });
    await server.restart();
    expect(await server.client.get('/api/settings/secrets')).toEqual({ secrets: [] });
  });
});
