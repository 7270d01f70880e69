import { expect, it } from '@jest/globals';
import { answerLimit } from './answer-limits.js';

it.each([
  ['gpt-3.5-turbo', 4_096],
  ['gpt-4-turbo-2024-04-09', 4_096],
  ['gpt-4', 8_192],
  ['gpt-4-0613', 8_192],
  ['gpt-4o', 16_384],
  ['gpt-4o-2024-05-13', 4_096],
  ['gpt-4.1', 16_384],
  ['anthropic/claude-3-haiku', 4_096],
  ['anthropic/claude-3.5-sonnet', 8_192],
  ['claude-3-5-haiku-latest', 8_192],
  ['claude-sonnet-4-5', 16_384],
  ['deepseek-chat', 8_192],
  ['gemini-2.0-flash', 8_192],
  ['gemini-2.5-pro', 16_384],
  ['qwen2.5-coder', 16_384],
])('the limit of an answer of %s is %d tokens', (model, tokens) => {
  expect(answerLimit(model)).toBe(tokens);
});
