import { beforeAll, describe, expect, it } from '@jest/globals';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startRequest } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const LOCAL = { name: 'local', source: '../market' };
const REMOTE = { name: 'remote', source: 'github:octo/plugins' };

describe('plugins', () => {
  const server = useAgentServer(startTestAgentServer);

  beforeAll(async () => {
    const market = path.join(server.workspace, 'market');
    const skill = path.join(market, 'plugins/style/skills/lint-style');
    await mkdir(skill, { recursive: true });
    await mkdir(path.join(market, '.plugin'));
    const text = '---\nname: lint-style\ndescription: How to lint.\n---\nUse two spaces.\n';
    await writeFile(path.join(skill, 'SKILL.md'), text);
    const plugins = [
      { name: 'style', source: './plugins/style' },
      { name: 'outside', source: '../../../etc' },
      { name: 'far', source: { source: 'github', repo: 'octo/far' } },
    ];
    await writeFile(
      path.join(market, '.plugin/marketplace.json'),
      JSON.stringify({ name: 'local', plugins }),
    );
  });

  const start = async (...registered_marketplaces: object[]): Promise<string> => {
    const { agent } = startRequest();
    return await server.client.start({
      agent: { ...Object(agent), agent_context: { registered_marketplaces } },
    });
  };
  const load = async (id: string, plugin_ref: unknown) =>
    await server.client.act(id, 'load_plugin', { plugin_ref });
  const settings = async (id: string): Promise<unknown> => await server.client.answerTo(id, 'settings');

  it('bring their skills into a conversation, which keeps them after a restart', async () => {
    const id = await start(LOCAL);
    expect(await settings(id)).not.toContain('lint-style');
    expect(await load(id, 'style@local')).toEqual({ status: 200, body: { success: true } });
    expect(await load(id, 'style')).toMatchObject({ status: 200 });
    expect(await settings(id)).toContain('lint-style');

    await server.restart();
    const model = { llm_model: 'openai/fake', llm_base_url: null, llm_api_key: 'k' };
    await server.client.act(id, 'credentials', model);
    expect(await settings(id)).toContain('lint-style');
  });

  it.each<[string, object[], unknown, number, string]>([
    ['no marketplace is registered', [], 'style', 400, 'registered_marketplaces'],
    ['the marketplace is elsewhere', [REMOTE], 'style', 400, 'downloads no marketplaces'],
    ['the marketplace does not have it', [LOCAL], 'none@local', 404, "'none@local' not found"],
    ['there is no such marketplace', [LOCAL], 'style@none', 404, 'not found'],
    ['the folder is no marketplace', [{ name: 'x', source: '.' }], 'style', 404, 'not found'],
    ['the folder lies outside', [{ name: 'x', source: '/etc' }], 'style', 403, 'outside of the workspace'],
    ['the plugin lies outside', [LOCAL], 'outside', 400, 'does not lie in the folder'],
    ['the plugin is elsewhere', [LOCAL], 'far', 400, 'does not lie in the folder'],
    ['the name is half of one', [LOCAL], '@local', 400, 'plugin-name'],
  ])('are refused: %s', async (_name, marketplaces, reference, status, detail) => {
    expect(await load(await start(...marketplaces), reference)).toEqual({
      status,
      body: { detail: expect.stringContaining(detail) },
    });
  });
});
