import { expect, it } from '@jest/globals';
import { NO_CREDENTIALS, updateCredentials } from './credentials.js';

const WITH_KEY = { ...NO_CREDENTIALS, llmApiKey: 'old' };
const WITHHELD = { ...NO_CREDENTIALS, llmKeyWithheld: true };

it.each([
  [WITH_KEY, {}, { llmApiKey: 'old', llmKeyWithheld: false }],
  [WITH_KEY, { llm_api_key: 'new' }, { llmApiKey: 'new', llmKeyWithheld: false }],
  // It was for the conversation's own server.
  [WITH_KEY, { llm_key_withheld: true }, { llmApiKey: 'old', llmKeyWithheld: true }],
  [WITHHELD, { language: 'de' }, { llmApiKey: null, llmKeyWithheld: true }],
  [WITHHELD, { llm_api_key: 'new' }, { llmApiKey: 'new', llmKeyWithheld: false }],
  [WITHHELD, { llm_key_withheld: false }, { llmApiKey: null, llmKeyWithheld: false }],
])('%j, then %j', (old, update, expected) => {
  expect(updateCredentials(old, update)).toMatchObject(expected);
});
