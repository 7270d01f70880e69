import { expect, it } from '@jest/globals';
import { answerEnding } from './refusal-words.js';

it.each([
  ['stop', 'stop', 'complete'],
  ['tool-calls', 'tool_calls', 'complete'],
  ['other', 'eos', 'complete'],
  ['other', undefined, 'complete'],
  ['length', 'length', 'cut'],
  ['length', 'max_tokens', 'cut'],
  ['other', 'MAX_TOKENS', 'cut'],
  ['other', 'model_length', 'cut'],
  ['content-filter', 'content_filter', 'filtered'],
  // OpenAI: an answer with a refusal.
  ['content-filter', 'stop', 'filtered'],
  ['content-filter', 'refusal', 'filtered'],
  ['other', 'refusal', 'filtered'],
  ['other', 'SAFETY', 'filtered'],
  ['other', 'PROHIBITED_CONTENT', 'filtered'],
  ['other', 'content-filtered', 'filtered'],
  ['other', 'content_filter: RECITATION', 'filtered'],
  ['length', 'model_context_window_exceeded', 'full'],
  ['other', 'model_context_window_exceeded', 'full'],
  ['other', 'MALFORMED_FUNCTION_CALL', 'broken'],
  ['other', 'function_call_filter: MALFORMED_FUNCTION_CALL', 'broken'],
  ['other', 'unexpected_tool_call', 'broken'],
  ['other', 'error', 'broken'],
  ['other', 'insufficient_system_resource', 'broken'],
  ['other', 'network_error', 'broken'],
  ['other', 'abort', 'broken'],
])('answerEnding: %s, %s: %s', (unified, raw, ending) => {
  expect(answerEnding(unified, raw)).toBe(ending);
});
