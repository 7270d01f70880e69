import { expect, it } from '@jest/globals';
import { parseConfig } from '../config/load-config.js';
import { createModelHttpClient, isSameModelServer } from './model-check.js';

it.each([
  [null, null, true],
  [null, ' ', true],
  ['https://models.example.com/v1', 'https://models.example.com/v2/', true],
  ['https://models.example.com/v1', 'https://MODELS.example.com:443/v1', true],
  ['https://models.example.com/v1', null, false],
  [null, 'https://models.example.com/v1', false],
  ['https://models.example.com/v1', 'https://other.example.com/v1', false],
  ['https://models.example.com/v1', 'http://models.example.com/v1', false],
  ['http://localhost:8000/v1', 'http://localhost:8001/v1', false],
])('%s and %s: %s', (one, other, expected) => {
  const model = 'openai/large';

  expect(isSameModelServer({ model, base_url: one }, { model, base_url: other })).toBe(expected);
});

it.each([
  ['openai/large', 'openai/small', true],
  ['large', 'openai/large', true],
  ['openai/large', 'anthropic/large', false],
  ['large', 'anthropic/large', false],
  ['anthropic/large', ' anthropic/small ', true],
  ['anthropic/large', null, true],
  ['anthropic/large', ' ', true],
])('without an address %s and %s: %s', (one, other, expected) => {
  expect(isSameModelServer({ model: one, base_url: null }, { model: other, base_url: '' })).toBe(expected);
});

it('goes by the address where there is one, whatever the model is called', () => {
  const base_url = 'https://models.example.com/v1';

  expect(isSameModelServer({ model: 'openai/a', base_url }, { model: 'anthropic/b', base_url })).toBe(true);
  expect(isSameModelServer({ model: 'openai/a', base_url }, { model: null, base_url: null })).toBe(false);
});

it.each([
  ['localhost:1', 'http://127.0.0.1:1/v1'],
  ['127.0.0.1:1', 'http://localhost:1/v1'],
])('reaches the port of this machine that %s opens to agents at %s, as they do', async (opened, url) => {
  const client = createModelHttpClient(parseConfig({ SANDBOX_NETWORK_ALLOW: opened }, false));
  await expect(client.fetch(url)).rejects.toMatchObject({ reason: 'network' });
});
