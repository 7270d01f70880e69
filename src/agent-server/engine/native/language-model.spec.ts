import { describe, expect, it } from '@jest/globals';
import { LlmFailure } from './llm-failure.js';
import { languageModel } from './language-model.js';

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
  it('speaks with Anthropic in its own language, with everybody else in that of OpenAI', () => {
    expect(made('anthropic/claude', 'k')).toEqual({ provider: 'anthropic.messages', modelId: 'claude' });
    expect(made('openai/gpt-5', 'k')).toEqual({ provider: 'openai.chat', modelId: 'gpt-5' });
  });

  it('looks for no key of Anthropic in the environment', () => {
    expect(() => made('anthropic/claude', null)).toThrow(LlmFailure);
  });

  it('calls no server that a user names and the operator does not allow', () => {
    const allowlist = ['llm.example.com', 'http://127.0.0.1:4000'];
    for (const allowed of ['https://llm.example.com/v1', 'http://127.0.0.1:4000/v1', null]) {
      expect(made('openai/gpt-5', 'k', allowed, allowlist)).toMatchObject({ modelId: 'gpt-5' });
    }
    for (const refused of ['http://llm.example.com/v1', 'http://127.0.0.1:4001', 'http://169.254.169.254']) {
      expect(() => made('openai/gpt-5', 'k', refused, allowlist)).toThrow(/llm_base_url.*OUTBOUND_ALLOWLIST/);
    }
  });
});
