import { describe, expect, it } from '@jest/globals';
import { languageModel, modelEndpoint } from './language-model.js';
import { LlmFailure } from './llm-failure.js';

function made(
  model: string,
  apiKey: string | null,
  baseUrl: string | null = null,
  allowlist: string[] | null = null,
) {
  const result = languageModel({
    model,
    apiKey,
    baseUrl,
    timeoutMs: 1_000,
    allowlist,
    anthropicUrl: 'https://a.example/v1',
  });
  return typeof result === 'string' ? result : { provider: result.provider, modelId: result.modelId };
}

describe('languageModel', () => {
  it("uses Anthropic's own API for Anthropic and OpenAI's API for all others", () => {
    expect(made('anthropic/claude', 'k')).toEqual({ provider: 'anthropic.messages', modelId: 'claude' });
    expect(made('openai/gpt-5', 'k')).toEqual({ provider: 'openai.chat', modelId: 'gpt-5' });
  });

  it('takes no Anthropic key from the environment', () => {
    expect(() => made('anthropic/claude', null)).toThrow(LlmFailure);
  });

  it('calls no server of a user that the operator does not allow', () => {
    const allowlist = ['llm.example.com', 'http://127.0.0.1:4000'];
    for (const allowed of ['https://llm.example.com/v1', 'http://127.0.0.1:4000/v1', null]) {
      expect(made('openai/gpt-5', 'k', allowed, allowlist)).toMatchObject({ modelId: 'gpt-5' });
    }
    for (const refused of ['http://llm.example.com/v1', 'http://127.0.0.1:4001', 'http://169.254.169.254']) {
      expect(() => made('openai/gpt-5', 'k', refused, allowlist)).toThrow(/llm_base_url.*OUTBOUND_ALLOWLIST/);
    }
  });
});

const OWN = 'http://llm.local/v1';

describe('modelTarget', () => {
  it.each([
    ['openai/gpt-5', null, { api: 'openai', model: 'gpt-5', baseUrl: 'https://api.openai.com/v1' }],
    ['openai/gpt-5', OWN, { api: 'openai', model: 'gpt-5', baseUrl: OWN }],
    ['openai/org/model', OWN, { api: 'openai', model: 'org/model', baseUrl: OWN }],
    ['litellm_proxy/claude', OWN, { api: 'openai', model: 'claude', baseUrl: OWN }],
    ['litellm_proxy/anthropic/claude', OWN, { api: 'openai', model: 'anthropic/claude', baseUrl: OWN }],
    ['anthropic/claude', null, { api: 'anthropic', model: 'claude' }],
    ['anthropic/claude', OWN, { api: 'openai', model: 'anthropic/claude', baseUrl: OWN }],
    ['gpt-5', null, { api: 'openai', model: 'gpt-5', baseUrl: 'https://api.openai.com/v1' }],
    ['qwen/qwen3', OWN, { api: 'openai', model: 'qwen/qwen3', baseUrl: OWN }],
    [' gpt-5 ', `${OWN}//`, { api: 'openai', model: 'gpt-5', baseUrl: OWN }],
    ['gpt-5', `${OWN}/chat/completions`, { api: 'openai', model: 'gpt-5', baseUrl: OWN }],
    ['gpt-5', ' ', { api: 'openai', model: 'gpt-5', baseUrl: 'https://api.openai.com/v1' }],
  ])('%s at %s', (name, baseUrl, target) => {
    expect(modelEndpoint(name, baseUrl)).toEqual(target);
  });

  it.each([
    ['litellm_proxy/x', 'llm_base_url'],
    ['gemini/flash', 'llm_base_url'],
    ['', 'llm_model'],
  ])('does not know where to find %j', (name, setting) => {
    expect(() => modelEndpoint(name, null)).toThrow(LlmFailure);
    expect(() => modelEndpoint(name, null)).toThrow(setting);
  });
});
