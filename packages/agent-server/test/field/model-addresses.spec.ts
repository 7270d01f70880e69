import { expect, it } from '@jest/globals';
import { say } from '../fakes/scripted-llm.answers.js';
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
