import { afterEach, expect, it } from '@jest/globals';
import path from 'node:path';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { googleRefusal } from '../fakes/model-limits.js';
import { ScriptedAnthropic } from '../fakes/scripted-anthropic.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { startRequest } from '../support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

// https://github.com/openai/openai-agents-python/pull/454: OpenAI refuses an object without properties.
// https://github.com/IBM-Cloud/ibm-cloud-cli-release/issues/226: one property key fails every request to Anthropic.

const ODD_SERVER = {
  command: process.execPath,
  args: [path.resolve('packages/agent-server/test/fakes/mcp-servers/odd-tools-server.mjs')],
};

let server: TestAgentServer;

afterEach(async () => {
  await server.stop();
});

async function work(llm: Record<string, unknown>): Promise<unknown[]> {
  const agent = {
    kind: 'Agent',
    llm: { api_key: 'llm-key-5519', ...llm },
    mcp_config: { mcpServers: { odd: ODD_SERVER } },
  };
  const id = await server.client.start(startRequest({ agent }));
  await server.client.say(id, 'Do it.');
  await server.client.untilStatus(id, 'finished');
  return await server.client.events(id, '&kind=ConversationErrorEvent');
}

it('offers tools whose schemas servers like OpenAI refuse, and calls them as their server knows them', async () => {
  const llm = await ScriptedLlm.start(
    inOrder(call('dots_and_slashes', { _filter: 'x', user_name: 1, more: true }), say('Done.')),
  );
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
  const told = await work({ model: 'openai/fake', base_url: llm.url });
  await llm.close();
  expect(llm.refusals).toEqual([]);
  const [request] = llm.requests;
  expect(request?.tools).toEqual(
    expect.arrayContaining(['no_properties', 'odd_no_properties', 'nothing', 'dots_and_slashes']),
  );
  // A valid name stays with its tool, although another one comes first and would be adapted to it.
  expect(request?.toolSchemas['no_properties']).toMatchObject({ properties: { kept: { type: 'string' } } });
  expect(request?.toolSchemas['choice']).toEqual({
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'string' } },
  });
  expect(request?.toolSchemas['references']).toMatchObject({ properties: { at: { type: 'string' } } });
  const result = llm.requests.at(-1)?.messages.find(({ role }) => role === 'tool')?.content;
  expect(result).toBe(JSON.stringify(['dots.and/slashes', { $filter: 'x', 'user/name': 1, more: true }]));
  expect(told).toMatchObject([
    { code: 'McpToolsAdjusted' },
    { source: 'environment', code: 'ToolSchemaRepaired' },
  ]);
  const detail = JSON.stringify(told);
  expect(detail).toContain('no_items (an array without items)');
  expect(detail).toContain('optional (a list of types)');
  expect(detail).not.toMatch(/references|\bno_properties/);
});

// google-gemini/gemini-cli, n8n-io/n8n#15553, zed-industries/zed#44875: one list of types fails every request.
it('offers tools whose schemas Google refuses', async () => {
  const llm = await ScriptedLlm.start(inOrder(call('optional', { size: null }), say('Done.')));
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
  await work({ model: 'openai/gemini-3', base_url: llm.url });
  await llm.close();
  expect(llm.requests.map(({ body }) => googleRefusal(body))).toEqual([null, null]);
  expect(llm.requests[0]?.toolSchemas['optional']).toMatchObject({
    properties: { size: { type: 'integer', nullable: true } },
  });
});

it('offers tools whose schemas Anthropic refuses', async () => {
  const claude = await ScriptedAnthropic.start([{ text: 'Done.', usage: { input: 1, output: 1 } }]);
  server = await startTestAgentServer({
    createEngine: async () => new NativeEngine({ anthropicUrl: claude.url }),
  });
  await work({ model: 'anthropic/claude' });
  await claude.close();
  expect(claude.refusals).toEqual([]);
  expect(claude.requests).toHaveLength(1);
});
