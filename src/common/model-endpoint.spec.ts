import { describe, expect, it } from '@jest/globals';
import { modelEndpoint } from './model-endpoint.js';

const OWN = 'http://llm.local/v1';

describe('modelEndpoint', () => {
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
  ])('%s at %s', (name, baseUrl, endpoint) => {
    expect(modelEndpoint(name, baseUrl)).toEqual(endpoint);
  });

  it.each([
    ['litellm_proxy/x', 'llm_base_url'],
    ['gemini/flash', 'llm_base_url'],
    ['', 'llm_model'],
  ])('does not know where to find %j', (name, setting) => {
    expect(modelEndpoint(name, null)).toEqual({ problem: expect.stringContaining(setting) });
  });
});
