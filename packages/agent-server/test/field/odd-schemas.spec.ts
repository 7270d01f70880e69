import { expect, it } from '@jest/globals';
import { googleRefusal } from '../fakes/model-limits.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { nativeAgent, oddTools } from './native-agent.js';

// https://github.com/openai/openai-agents-python/pull/454: OpenAI refuses an object without properties.
// https://github.com/IBM-Cloud/ibm-cloud-cli-release/issues/226: one property key fails every request to Anthropic.

const agent = nativeAgent();
const mcpConfig = { odd: oddTools() };

it('offers tools whose schemas servers like OpenAI refuse, and calls them as their server knows them', async () => {
  const odd = call('dots_and_slashes', { _filter: 'x', user_name: 1, more: true });
  const host = await agent.run(inOrder(odd, say('Done.')), { mcpConfig });
  expect(agent.llm.refusals).toEqual([]);
  const [request] = agent.llm.requests;
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
  const result = agent.llm.requests.at(-1)?.messages.find(({ role }) => role === 'tool')?.content;
  expect(result).toBe(JSON.stringify(['dots.and/slashes', { $filter: 'x', 'user/name': 1, more: true }]));
  const told = host.ofKind('ConversationErrorEvent');
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
  const llm = { model: 'openai/gemini-3', apiKey: 'k', baseUrl: agent.llm.url };
  await agent.run(inOrder(call('optional', { size: null }), say('Done.')), { llm, mcpConfig });
  expect(agent.llm.requests.map(({ body }) => googleRefusal(body))).toEqual([null, null]);
  expect(agent.llm.requests[0]?.toolSchemas['optional']).toMatchObject({
    properties: { size: { type: 'integer', nullable: true } },
  });
});

it('offers tools whose schemas Anthropic refuses', async () => {
  const { claude } = await agent.runAtAnthropic([{ text: 'Done.' }], { mcpConfig });
  expect(claude.refusals).toEqual([]);
  expect(claude.requests).toHaveLength(1);
});
