import { expect, it } from '@jest/globals';
import { calledModel } from './called-model.js';

it.each<
  [string, [configured: string | null, asked: string | null, answered: string | null], string, string[]]
>([
  [
    'the one of the settings',
    ['openai/gpt-5', 'gpt-5', 'gpt-5-2026-01-01'],
    'openai/gpt-5',
    ['openai/gpt-5', 'openai/gpt-5-2026-01-01', 'gpt-5-2026-01-01'],
  ],
  [
    'that of the settings where the body names none',
    ['azure/mine', null, 'gpt-5'],
    'azure/mine',
    ['azure/mine', 'azure/gpt-5', 'gpt-5'],
  ],
  ['another one by the same key', ['openai/gpt-5-mini', 'gpt-5', null], 'gpt-5', ['openai/gpt-5', 'gpt-5']],
  ['one of a gateway', ['openrouter/a/m', 'a/m', 'a/m'], 'openrouter/a/m', ['openrouter/a/m', 'a/m']],
  ['one by the key of a secret', [null, 'claude-x', 'claude-x-1'], 'claude-x', ['claude-x', 'claude-x-1']],
  ['what answered', [null, null, 'gemini-3'], 'gemini-3', ['gemini-3']],
  [
    'storable',
    [null, `${'a'.repeat(199)}\u{1f600}`, null],
    `${'a'.repeat(199)}\u{fffd}`,
    [`${'a'.repeat(199)}\u{1f600}`],
  ],
  ['unknown', [null, null, null], 'unknown model', []],
])('the model of a call is %s', (_what, [model, asked, answeredBy], name, priced) => {
  expect(calledModel({ model, asked, answeredBy })).toEqual({ name, priced });
});
