import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { streamText } from 'ai';
import { jsonAt, parseJson } from '@slipway/common/json-access.js';
import { languageModel, parametersProblem } from './language-model.js';
import { LlmFailure } from './llm-failure.js';

const OPTIONS = {
  timeoutMs: 1_000,
  allowlist: null,
  anthropicUrl: 'https://a.example/v1',
  cacheKey: 'conversation-7',
};

afterEach(() => {
  jest.restoreAllMocks();
});

async function made(
  model: string,
  apiKey: string | null,
  baseUrl: string | null = null,
  allowlist: string[] | null = null,
) {
  const result = await languageModel({ ...OPTIONS, model, apiKey, baseUrl, allowlist });
  return typeof result === 'string' ? result : { provider: result.provider, modelId: result.modelId };
}

describe('languageModel', () => {
  it("uses Anthropic's own API for Anthropic and OpenAI's API for all others", async () => {
    expect(await made('anthropic/claude', 'k')).toEqual({
      provider: 'anthropic.messages',
      modelId: 'claude',
    });
    expect(await made('openai/gpt-4.1', 'k')).toEqual({ provider: 'openai.chat', modelId: 'gpt-4.1' });
  });

  it.each([
    ['openai/gpt-5', null, 'responses'],
    ['gpt-5.6-luna', null, 'responses'],
    ['openai/gpt-6-sol', null, 'responses'],
    ['openai/o3', null, 'responses'],
    ['openai/o3-pro', 'https://llm.example/v1', 'responses'],
    ['openai/o4-mini-deep-research', 'https://llm.example/v1', 'responses'],
    ['openai/codex-mini-latest', 'https://llm.example/v1', 'responses'],
    ['openai/gpt-4.1', 'https://llm.example/v1/responses', 'responses'],
    ['openai/deepseek-pro', 'https://llm.example/v1', 'chat'],
    ['azure/gpt-5', 'https://x.openai.azure.com', 'responses'],
    ['azure/house', 'https://x.openai.azure.com/openai/responses?api-version=1', 'responses'],
    ['openai/gpt-5-chat-latest', null, 'chat'],
    ['openai/gpt-5-search-api', null, 'chat'],
    ['openai/gpt-4.1', null, 'chat'],
    ['openai/gpt-5', 'https://eu.api.openai.com/v1', 'responses'],
    ['openai/gpt-5', 'https://llm.example/v1', 'chat'],
    ['litellm_proxy/gpt-5.1-codex-max', 'https://llm.example/v1', 'responses'],
    ['litellm_proxy/azure/gpt-5.1-codex', 'https://llm.example/v1', 'responses'],
    ['openrouter/openai/gpt-5.1-codex', null, 'chat'],
    ['deepseek/deepseek-chat', null, 'chat'],
    ['gemini/gemini-2.5-pro', null, 'chat'],
  ])('asks for %s at %s through %s first', async (model, baseUrl, api) => {
    expect(await made(model, 'k', baseUrl)).toMatchObject({ provider: `openai.${api}` });
  });

  it.each([
    ['openai/gpt-4.1', null, 'conversation-7'],
    ['openai/gpt-5', null, 'conversation-7'],
    ['openai/gpt-4.1', 'https://us.api.openai.com/v1', 'conversation-7'],
    ['mistral/devstral-medium-latest', null, 'conversation-7'],
    ['litellm_proxy/gpt-5.1-codex', 'https://llm.example/v1', 'conversation-7'],
    // MoonshotAI/kimi-code#2166 and #2611: they refuse it.
    ['nvidia_nim/meta/llama', null, undefined],
    ['azure_ai/grok', 'https://x.services.ai.azure.com', undefined],
    ['openai/gpt-4.1', 'https://llm.example/v1', undefined],
  ])('lets the cache of %s at %s be found by its conversation: %s', async (model, baseUrl, key) => {
    const bodies: unknown[] = [];
    jest.spyOn(globalThis, 'fetch').mockImplementation(async (_input, init) => {
      bodies.push(typeof init?.body === 'string' ? parseJson(init.body) : null);
      return new Response('{}', { status: 401 });
    });
    await streamText({
      model: await languageModel({ ...OPTIONS, model, apiKey: 'k', baseUrl }),
      prompt: 'Hello',
      maxRetries: 0,
      onError: () => undefined,
    }).consumeStream();
    expect(bodies).toHaveLength(1);
    expect(jsonAt(bodies[0], 'prompt_cache_key')).toBe(key);
  });

  it('refuses a model without the address of its provider, naming the setting', async () => {
    await expect(made('azure/flash', 'k')).rejects.toThrow(LlmFailure);
    await expect(made('azure/flash', 'k')).rejects.toThrow('llm_base_url');
    await expect(made('', 'k')).rejects.toThrow(LlmFailure);
  });

  it.each(['sk-abc…xyz', 'sk-\u200babc'])('refuses a key that no header may have: %j', async (key) => {
    await expect(made('openai/gpt-5', key)).rejects.toThrow(/llm_api_key.*Copy/);
  });

  it('takes no Anthropic key from the environment', async () => {
    await expect(made('anthropic/claude', null)).rejects.toThrow(LlmFailure);
  });

  it('calls no server of a user that the operator does not allow', async () => {
    const allowlist = ['llm.example.com', 'http://127.0.0.1:4000'];
    for (const allowed of ['https://llm.example.com/v1', 'http://127.0.0.1:4000/v1', null]) {
      expect(await made('openai/gpt-5', 'k', allowed, allowlist)).toMatchObject({ modelId: 'gpt-5' });
    }
    for (const refused of ['http://llm.example.com/v1', 'http://127.0.0.1:4001', 'http://169.254.169.254']) {
      await expect(made('openai/gpt-5', 'k', refused, allowlist)).rejects.toThrow(
        /llm_base_url.*OUTBOUND_ALLOWLIST/,
      );
    }
    await expect(made('deepseek/deepseek-chat', 'k', null, allowlist)).rejects.toThrow('OUTBOUND_ALLOWLIST');
    expect(await made('deepseek/deepseek-chat', 'k')).toMatchObject({ modelId: 'deepseek-chat' });
  });
});

it.each([
  [{}, null],
  [{ extra_headers: { 'x-team': 'blue', Authorization: 'Bearer x' } }, null],
  [{ extra_headers: { Host: 'internal' } }, '"Host" is not a header'],
  [{ extra_headers: { 'content-length': '3' } }, '"content-length" is not a header'],
  [{ extra_headers: { 'two words': 'x' } }, '"two words" is not a header'],
  [{ extra_headers: { 'x-team': 'a\r\nx-other: b' } }, 'the value of x-team'],
  [{ extra_headers: { 'x-team': '日本' } }, 'the value of x-team'],
])('parametersProblem: %j: %s', (parameters, problem) => {
  expect(parametersProblem(parameters)).toEqual(problem === null ? null : expect.stringContaining(problem));
});
