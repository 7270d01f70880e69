import { describe, expect, it } from '@jest/globals';
import { LlmFailure } from './llm-failure.js';
import { languageModel } from './language-model.js';

function made(model: string, apiKey: string | null) {
  const result = languageModel({ model, apiKey, baseUrl: null, timeoutMs: 1_000 });
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
});
