import { expect, it } from '@jest/globals';
import { failureDetail } from './agent-server.http.js';

const INVALID_REQUEST = JSON.stringify({
  detail: [
    {
      type: 'missing',
      loc: ['body', 'agent', 'tools', 0],
      msg: 'Field required',
      input: { llm: { api_key: 'sk-secret' } },
    },
    { loc: [], input: 'sk-secret' },
    'sk-secret',
  ],
});

it.each([
  ['a sentence', '{"detail":"It runs already."}', 'It runs already.'],
  ['a text that is not JSON', 'Bad Gateway', 'Bad Gateway'],
  ['an empty body', '', 'no reason given'],
  ['JSON without a reason', '{"api_key":"sk-secret"}', 'no reason given'],
  [
    'problems, without the request',
    INVALID_REQUEST,
    'body.agent.tools.0: Field required; request: no reason given; request: no reason given',
  ],
  ['a long text, clipped', JSON.stringify({ detail: 'x'.repeat(501) }), 'x'.repeat(500)],
])('finds the detail of %s', (_name, text, expected) => {
  expect(failureDetail(text)).toBe(expected);
});
