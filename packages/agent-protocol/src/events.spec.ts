import { expect, it } from '@jest/globals';
import { type AgentEvent, conversationTitle } from './events.js';

function message(source: 'user' | 'agent', text: string): AgentEvent {
  return {
    kind: 'MessageEvent',
    id: text,
    timestamp: '',
    source,
    llm_message: { role: 'user', content: [{ type: 'text', text }] },
    activated_skills: [],
    extended_content: [],
  };
}

it.each([
  ['Fix the build', 50, 'Fix the build'],
  ['\n\n# Fix   the build\nplease', 50, 'Fix the build'],
  ['Fix the build of the front end', 16, 'Fix the build…'],
  ['Donaudampfschifffahrt', 8, 'Donauda…'],
  ['😀😀😀', 2, '😀…'],
  ['   ', 50, null],
])('%j in %d letters', (text, maxLength, expected) => {
  expect(conversationTitle([message('agent', 'Hello'), message('user', text)], maxLength)).toBe(expected);
});

it('of a line without end', () => {
  const line = '#'.repeat(20_000_000);
  expect(conversationTitle([message('user', `${line}\nFix it`)], 50)).toBe('Fix it');
});
