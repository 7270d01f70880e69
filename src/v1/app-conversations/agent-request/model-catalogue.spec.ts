import { describe, expect, it } from '@jest/globals';
import * as catalogue from '@pydantic/genai-prices';
import { catalogueFacts } from './model-catalogue.js';

describe('catalogueFacts', () => {
  it.each(['gpt-4o', 'openai/gpt-4o', 'litellm_proxy/gpt-4o', 'litellm_proxy/openai/gpt-4o'])(
    'knows %s',
    (name) => {
      expect(catalogueFacts(catalogue, name)).toEqual({
        price: { input: 2.5, output: 10 },
        contextWindow: 128_000,
      });
    },
  );

  it('takes the first tier of a price that rises', () => {
    expect(catalogueFacts(catalogue, 'anthropic/claude-sonnet-4-5').price).toEqual({ input: 3, output: 15 });
  });

  it.each(['scripted', 'openai/nobody-knows-this', '', '/', 'a/'])('knows nothing of "%s"', (name) => {
    expect(catalogueFacts(catalogue, name)).toEqual({ price: null, contextWindow: null });
  });
});
