import { describe, expect, it } from '@jest/globals';
import type { ModelParameters } from '@slipway/agent-protocol/conversation-schemas.js';
import { ScriptedAnthropic } from '../fakes/scripted-anthropic.js';
import { fails, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { nativeAgent } from './native-agent.js';

const agent = nativeAgent();

// vitali87/code-graph-rag#282: a provider gets LiteLLM's prefix. openclaw/openclaw#48107: a query that is lost.
it.each([
  ['deepseek/deepseek-chat', '/v1', 'deepseek-chat', '/v1/chat/completions'],
  ['litellm_proxy/gpt-5', '/v1/', 'gpt-5', '/v1/chat/completions'],
  ['ollama/qwen3:8b', '', 'qwen3:8b', '/v1/chat/completions'],
  ['ollama_chat/qwen3:8b', '/', 'qwen3:8b', '/v1/chat/completions'],
  ['openai/org/model', '/v1', 'org/model', '/v1/chat/completions'],
  ['qwen/qwen3', '/v1', 'qwen/qwen3', '/v1/chat/completions'],
  [
    'gpt-5',
    '/v1?api-version=2025-01-01-preview',
    'gpt-5',
    '/v1/chat/completions?api-version=2025-01-01-preview',
  ],
  ['gpt-5', '/v1/chat/completions?a=1&b=x%26y', 'gpt-5', '/v1/chat/completions?a=1&b=x%26y'],
])('%s at %s is called as %s at %s', async (model, path, name, url) => {
  const baseUrl = new URL(agent.llm.url).origin + path;
  const host = await agent.run(inOrder(say('done')), { llm: { model, apiKey: 'k', baseUrl } });
  expect(host.status).toBe('finished');
  expect(agent.llm.requests).toMatchObject([{ model: name, url }]);
});

// LLM-Red-Team/kimi-cc#11: Z.ai, Moonshot, MiniMax and DeepSeek offer Anthropic's form at such addresses.
describe("an address of Anthropic's form", () => {
  const ask = async (model: string, path: string, parameters: ModelParameters = {}) => {
    const gateway = await ScriptedAnthropic.start([{ text: 'done', usage: { input: 1, output: 1 } }]);
    const baseUrl = new URL(gateway.url).origin + path;
    const host = await agent.run(inOrder(), { llm: { model, apiKey: 'k', baseUrl, parameters } });
    await gateway.close();
    return { host, gateway };
  };

  it.each<[string, string, ModelParameters, string, string]>([
    ['zai/glm-5', '/api/anthropic', {}, 'glm-5', '/api/anthropic/v1/messages'],
    ['anthropic/kimi-k3', '/anthropic/v1/', {}, 'kimi-k3', '/anthropic/v1/messages'],
    ['claude-sonnet-5', '/v1', { api: 'anthropic' }, 'claude-sonnet-5', '/v1/messages'],
  ])('%s at %s with %j is called as %s at %s', async (model, path, parameters, name, called) => {
    const { host, gateway } = await ask(model, path, parameters);
    expect(host.status).toBe('finished');
    expect(gateway.requests).toMatchObject([
      { path: called, body: { model: name }, headers: { 'x-api-key': 'k', authorization: 'Bearer k' } },
    ]);
    // The SDK knows Anthropic's models, and gives others very little.
    expect(gateway.requests[0]?.body['max_tokens']).toBeGreaterThanOrEqual(16_384);
  });

  it.each<[ModelParameters, string]>([
    [{}, 'set api to anthropic'],
    [{ api: 'anthropic' }, 'set api to openai'],
  ])('is named where there is none: %j', async (parameters, hint) => {
    const path = parameters.api === undefined ? '/nothing' : '/nothing/here';
    const baseUrl = new URL(agent.llm.url).origin + path;
    const host = await agent.run(inOrder(), { llm: { model: 'm', apiKey: 'k', baseUrl, parameters } });
    expect(host.status).toBe('error');
    expect(host.ofKind('ConversationErrorEvent')[0]?.detail).toContain(hint);
  });

  it('is not spoken of where only the model is missing', async () => {
    const message = 'The model `m` does not exist or you do not have access to it.';
    const host = await agent.run(inOrder(fails(404, message)));
    expect(host.ofKind('ConversationErrorEvent')[0]?.detail).not.toContain('api');
  });
});
