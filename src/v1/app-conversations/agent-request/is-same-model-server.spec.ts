import { expect, it } from '@jest/globals';
import { isSameModelServer } from './is-same-model-server.js';

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
  expect(isSameModelServer(one, other)).toBe(expected);
});
