import { expect, it } from '@jest/globals';
import { tmpdir } from 'node:os';
import { isJsonObject } from '@slipway/common/json-access.js';
import { googleRefusal } from '../fakes/model-limits.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { nativeAgent, oddTools } from './native-agent.js';
import { NativeTools } from '../../src/engine/native/native-tools.js';
import { filterPrompt } from '../../src/engine/native/prompt-filter.js';
import { RemoteAccess } from '../../src/git/remote-access.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';

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

// zed-industries/zed#32946, anomalyco/opencode#4909: a request with more than 128 tools is refused as a whole.

it('offers as many tools as models take, its own first, and names the others once', async () => {
  const host = await agent.run(inOrder(call('usual_139', { a: 'x' }), say('done')), {
    mcpConfig: { many: oddTools('140') },
  });
  await agent.goOn(host, 'Again.');
  expect(agent.llm.refusals).toEqual([]);
  const offered = agent.llm.requests[0]?.tools ?? [];
  expect(offered).toHaveLength(128);
  expect(offered).toEqual(expect.arrayContaining(['terminal', 'finish', 'usual_000']));
  const told = host.ofKind('ConversationErrorEvent');
  expect(told).toMatchObject([{ source: 'environment', code: 'ToolsLeftOut' }]);
  const leftOut = Array.from({ length: 140 }, (_, index) => `usual_${String(index).padStart(3, '0')}`);
  const missing = leftOut.filter((name) => !offered.includes(name));
  expect(missing.length).toBeGreaterThan(12);
  expect(told[0]?.detail).toContain(`Left out: ${missing.join(', ')}.`);
  expect(host.ofKind('AgentErrorEvent')).toMatchObject([{ error: expect.stringContaining('usual_139') }]);
  expect(host.status).toBe('finished');
});

it('says nothing of what models take', async () => {
  const host = await agent.run(inOrder(say('done')), { mcpConfig: { many: oddTools('100') } });
  expect(host.ofKind('ConversationErrorEvent')).toEqual([]);
  expect(agent.llm.requests[0]?.tools).toContain('usual_099');
});

/** What llama.cpp, xgrammar and OpenAI's strict mode cannot read, in a pattern. */
const UNCOMMON = [
  ['a look-around', /\(\?[=!<]/],
  ['a class or a property by its letter', /\\[a-mo-qsu-zA-Z0-9]/],
  ['no anchors', /^[^^]|[^$]$/],
] as const;

function patternsIn(value: unknown): string[] {
  if (Array.isArray(value)) {
    return value.flatMap(patternsIn);
  }
  return isJsonObject(value)
    ? Object.entries(value).flatMap(([name, member]) =>
        name === 'pattern' && typeof member === 'string' ? [member] : patternsIn(member),
      )
    : [];
}

// ggml-org/llama.cpp#27580, #27397: a pattern that the grammar of a server does not know, and each request is refused.
it('our tools are offered with schemas that the common grammars know', async () => {
  const view = { environment: toolEnvironment({}), wrapper: [] };
  const resultSchema = { type: 'object', properties: { id: { type: 'string', pattern: String.raw`^\d+$` } } };
  const settings = engineSettings(tmpdir(), 'http://127.0.0.1:9', { searchApiKey: 'k', resultSchema });
  const git = { ok: true, timedOut: false, output: '' };
  const tools = new NativeTools(new MemoryEngineHost(settings), {
    view,
    workArea: null,
    mcpConnectTimeoutMs: 1_000,
    mcpSlowAfterMs: 1_000,
    remoteAccess: () => new RemoteAccess({ view, privateFolder: tmpdir(), git: () => ({ credentials: [] }) }),
    pullRequests: {
      mayPush: () => true,
      push: async () => await Promise.resolve(git),
      open: async () => await Promise.resolve({ number: 1, url: 'https://git.example/1' }),
    },
  });
  const offered = [...tools.offered().values()];
  await tools.close();
  const target = { api: 'openai', baseUrl: 'http://127.0.0.1:8080/v1', model: 'qwen' } as const;
  const sent = filterPrompt({ instructions: '', messages: [], tools: offered }, target).tools;

  expect(sent.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['git_remote', 'create_pull_request', 'web_search', 'finish']),
  );
  const patterns = patternsIn(sent.map(({ inputSchema }) => inputSchema));
  expect(patterns).toContain('^[0-9]+$');
  const problems = patterns.flatMap((pattern) =>
    UNCOMMON.filter(([, form]) => form.test(pattern)).map(([problem]) => `${problem}: ${pattern}`),
  );
  expect(problems).toEqual([]);
});
