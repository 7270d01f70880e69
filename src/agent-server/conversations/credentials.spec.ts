import { expect, it } from '@jest/globals';
import { missingKeyDetail, NO_CREDENTIALS, mergeCredentials } from './credentials.js';

const WITH_KEY = { ...NO_CREDENTIALS, llmApiKey: 'old' };
const WITHHELD = { ...NO_CREDENTIALS, llmKeyWithheld: true };

it.each([
  [WITH_KEY, {}, { llmApiKey: 'old', llmKeyWithheld: false }],
  [WITH_KEY, { llm_api_key: 'new' }, { llmApiKey: 'new', llmKeyWithheld: false }],
  // The known key was for the server of the conversation.
  [WITH_KEY, { llm_key_withheld: true }, { llmApiKey: 'old', llmKeyWithheld: true }],
  [WITHHELD, { language: 'de' }, { llmApiKey: null, llmKeyWithheld: true }],
  [WITHHELD, { llm_api_key: 'new' }, { llmApiKey: 'new', llmKeyWithheld: false }],
  [WITHHELD, { llm_key_withheld: false }, { llmApiKey: null, llmKeyWithheld: false }],
])('%j, then %j', (old, update, expected) => {
  expect(mergeCredentials(old, update)).toMatchObject(expected);
});

const record = (model: string, baseUrl: string | null) => ({
  id: 'c0ffee',
  llm: { model, baseUrl, timeoutMs: 1, usageId: 'agent' },
});

it('says how to give a lost key again', () => {
  expect(missingKeyDetail(record('openai/a', null), false)).toMatch(
    /not kept over a restart.*POST \/api\/conversations\/c0ffee\/credentials/,
  );
});

it.each([
  ['https://me:secret@models.example.com/v1?key=secret', '(openai/a at https://models.example.com)'],
  [null, '(openai/a)'],
  ['no address', '(openai/a)'],
])(
  'names the server for which a key was withheld, without the rest of its address: %s',
  (baseUrl, expected) => {
    const detail = missingKeyDetail(record('openai/a', baseUrl), true);

    expect(detail).toContain(`another model server than this conversation's ${expected}`);
    expect(detail).toContain('in the settings again');
    expect(detail).not.toContain('secret');
    // The service truncates longer texts.
    expect(detail.length).toBeLessThan(500);
  },
);
