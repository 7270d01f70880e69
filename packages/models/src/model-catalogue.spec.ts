import { describe, expect, it } from '@jest/globals';
import * as catalogue from '@pydantic/genai-prices';
import { catalogueFacts } from './model-catalogue.js';

describe('catalogueFacts', () => {
  it.each(['gpt-4o', 'openai/gpt-4o', 'litellm_proxy/gpt-4o', 'litellm_proxy/openai/gpt-4o'])(
    'knows %s',
    (name) => {
      expect(catalogueFacts(catalogue, name)).toEqual({
        price: { input: 2.5, output: 10, cache_read: 1.25 },
        contextWindow: 128_000,
      });
    },
  );

  it.each([
    'gemini/gemini-2.5-pro',
    'xai/grok-4-0709',
    'together_ai/Gryphe/MythoMax-L2-13b',
    'deepseek/deepseek-chat',
  ])('knows the price of %s by the prefix of LiteLLM', (name) => {
    expect(catalogueFacts(catalogue, name).price).toMatchObject({
      input: expect.any(Number),
      output: expect.any(Number),
    });
  });

  it('takes the first tier of a price that rises', () => {
    expect(catalogueFacts(catalogue, 'anthropic/claude-sonnet-4-5').price).toEqual({
      input: 3,
      output: 15,
      cache_read: 0.3,
      cache_write: 3.75,
    });
  });

  it.each(['scripted', 'openai/nobody-knows-this', '', '/', 'a/'])('knows nothing of "%s"', (name) => {
    expect(catalogueFacts(catalogue, name)).toEqual({ price: null, contextWindow: null });
  });
});
