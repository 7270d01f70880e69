import { describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const FAST = {
  model: 'openai/fast',
  api_key: 'key-of-a-profile',
  base_url: 'http://fast.example/v1',
  temperature: 0.5,
};

describe('profiles of models', () => {
  const server = useAgentServer(startTestAgentServer);

  const save = async (name: string, llm: unknown, members: object = {}) =>
    await server.client.post(`/api/profiles/${name}`, { llm, ...members });

  it('are listed and shown without their keys, unless these are asked for', async () => {
    expect(await save('fast', FAST)).toMatchObject({ status: 201, body: { name: 'fast' } });
    await save('keyless', FAST, { include_secrets: false });
    expect(await server.client.get('/api/profiles')).toEqual({
      profiles: [
        expect.objectContaining({
          name: 'fast',
          model: 'openai/fast',
          base_url: FAST.base_url,
          api_key_set: true,
        }),
        expect.objectContaining({ name: 'keyless', api_key_set: false }),
      ],
      active_profile: null,
    });
    expect(await server.client.get('/api/profiles/fast')).toEqual({
      name: 'fast',
      config: { ...FAST, api_key: null },
      api_key_set: true,
    });
    const headers = { 'X-Expose-Secrets': 'plaintext' };
    const shown = await server.client.fetch('/api/profiles/fast', { headers });
    expect(await shown.json()).toMatchObject({ config: FAST });
  });

  it('are switched to by their name, with address, key and parameters', async () => {
    await save('fast', FAST);
    const id = await server.client.start();
    const answer = await server.client.act(id, 'switch_profile', { profile_name: 'fast' });
    expect(answer).toEqual({ status: 200, body: { success: true } });
    expect(jsonAt(await server.client.info(id), 'agent', 'llm', 'model')).toBe(FAST.model);
    const settings = await server.client.answerTo(id, 'settings');
    expect(JSON.parse(String(settings))).toMatchObject({
      llm: {
        model: 'openai/fast',
        baseUrl: 'http://fast.example/v1',
        apiKey: '<secret-hidden>',
        parameters: { temperature: 0.5 },
      },
    });
  });

  it('that do not exist are not switched to', async () => {
    const id = await server.client.start();
    const answer = await server.client.act(id, 'switch_profile', { profile_name: 'gone' });
    expect(answer).toEqual({ status: 404, body: { detail: "Profile 'gone' not found" } });
    await save('short', FAST);
    expect((await server.client.send('DELETE', '/api/profiles/short')).status).toBe(200);
    expect((await server.client.send('GET', '/api/profiles/short')).status).toBe(404);
  });

  it.each([
    ['a name with a slash in it', '..%2Fx', FAST],
    ['no model', 'x', { api_key: 'k' }],
    ['a wrong temperature', 'x', { ...FAST, temperature: 'hot' }],
  ])('are refused: %s', async (_name, name, llm) => {
    expect((await save(name, llm)).status).toBe(422);
  });

  it('are bounded in number', async () => {
    const before = jsonList(await server.client.get('/api/profiles'), 'profiles').length;
    const saves = Array.from({ length: 101 - before }, async (_, index) => await save(`many-${index}`, FAST));
    const statuses = (await Promise.all(saves)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array<number>(100 - before).fill(201), 409]);
  });
});
