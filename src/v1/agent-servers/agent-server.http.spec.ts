import { expect, it } from '@jest/globals';
import { failureDetail } from './agent-server.http.js';

const NOT_UNDERSTOOD = JSON.stringify({
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
  ['no JSON', 'Bad Gateway', 'Bad Gateway'],
  ['nothing', '', 'no reason given'],
  ['JSON without a reason', '{"api_key":"sk-secret"}', 'no reason given'],
  [
    'problems, without what was sent',
    NOT_UNDERSTOOD,
    'body.agent.tools.0: Field required; request: no reason given; request: no reason given',
  ],
  ['too much', JSON.stringify({ detail: 'x'.repeat(501) }), 'x'.repeat(500)],
])('takes from %s', (_name, text, expected) => {
  expect(failureDetail(text)).toBe(expected);
});
