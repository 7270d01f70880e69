import { expect, it } from '@jest/globals';
import { missingCredentials, NO_CREDENTIALS, mergeCredentials, secretParameters } from './credentials.js';

const MODEL = { name: 'openai/a', baseUrl: 'https://models.example.com' };
const WITH_KEY = { ...NO_CREDENTIALS, model: MODEL, llmApiKey: 'old' };
const OTHER = 'https://b.example.com';
const HEADERS = { extra_headers: { 'api-key': 'x' } };
const WITH_SEARCH = { ...NO_CREDENTIALS, searchApiKey: 'search' };
const WITHHELD = { ...NO_CREDENTIALS, llmKeyWithheld: true };

it.each([
  [WITH_KEY, {}, { llmApiKey: 'old', llmKeyWithheld: false }],
  [WITH_KEY, { llm_api_key: 'new' }, { llmApiKey: 'new', llmKeyWithheld: false }],
  // The known key was for the server of the conversation.
  [WITH_KEY, { llm_key_withheld: true }, { llmApiKey: 'old', llmKeyWithheld: true }],
  [WITHHELD, { language: 'de' }, { llmApiKey: null, llmKeyWithheld: true }],
  [WITHHELD, { llm_api_key: 'new' }, { llmApiKey: 'new', llmKeyWithheld: false }],
  [WITHHELD, { llm_key_withheld: false }, { llmApiKey: null, llmKeyWithheld: false }],
  // A key belongs to the address that it came with.
  [WITH_KEY, { llm_model: MODEL.name, llm_base_url: MODEL.baseUrl }, { model: MODEL, llmApiKey: 'old' }],
  [WITH_KEY, { llm_base_url: OTHER }, { model: { ...MODEL, baseUrl: OTHER }, llmApiKey: null }],
  [
    WITH_KEY,
    { llm_model: 'anthropic/b', llm_base_url: null, llm_api_key: 'new' },
    { model: { name: 'anthropic/b', baseUrl: null }, llmApiKey: 'new' },
  ],
  // So do headers and other parameters.
  [{ ...WITH_KEY, llmParameters: HEADERS }, { llm_base_url: OTHER }, { llmParameters: {} }],
  [{ ...WITH_KEY, llmParameters: HEADERS }, { language: 'de' }, { llmParameters: HEADERS }],
  [WITH_KEY, { llm_parameters: { temperature: 1 } }, { llmParameters: { temperature: 1 } }],
  [NO_CREDENTIALS, { llm_api_key: 'new', llm_base_url: OTHER }, { model: null }],
  [
    NO_CREDENTIALS,
    {
      mcp_config: {
        mcpServers: {
          near: { command: 'npx', tools: ['search'] },
          far: { url: 'https://mcp.example.com', tools: [] },
        },
      },
    },
    {
      mcpServers: {
        near: { command: 'npx', args: [], env: {}, tools: ['search'] },
        far: { url: 'https://mcp.example.com', transport: 'http', headers: {}, tools: [] },
      },
    },
  ],
  [WITH_SEARCH, { tavily_api_url: OTHER }, { searchApiKey: null, tavilyApiUrl: OTHER }],
])('%j, then %j', (old, update, expected) => {
  expect(mergeCredentials(old, update)).toMatchObject(expected);
});

const NATIVE = { id: 'c0ffee', kind: 'native', llmKeyNeeded: true } as const;

it.each([
  { model: null, llmKeyWithheld: false },
  { model: MODEL, llmKeyWithheld: false },
  // It is not known which server it would be withheld from.
  { model: null, llmKeyWithheld: true },
])('says how to give a lost key again: %j', (credentials) => {
  expect(missingCredentials(NATIVE, { ...NO_CREDENTIALS, ...credentials })).toMatch(
    /not kept across a restart.*POST \/api\/conversations\/c0ffee\/credentials/,
  );
});

it.each([
  ['https://me:secret@models.example.com/v1?key=secret', '(openai/a at https://models.example.com)'],
  [null, '(openai/a)'],
  ['no address', '(openai/a)'],
])(
  'names the server for which a key was withheld, without the rest of its address: %s',
  (baseUrl, expected) => {
    const model = { name: 'openai/a', baseUrl };
    const detail = missingCredentials(NATIVE, { ...NO_CREDENTIALS, model, llmKeyWithheld: true });

    expect(detail).toContain(`another model server than this conversation's ${expected}`);
    expect(detail).toContain('in the settings again');
    expect(detail).not.toContain('secret');
    // The service truncates longer texts.
    expect(detail?.length).toBeLessThan(500);
  },
);

it.each([
  [{}, []],
  [{ extra_headers: { 'x-team': 'blue', 'api-key': 'k1' } }, ['k1', 'k1']],
  [{ extra_headers: { authorization: 'Bearer abc' } }, ['Bearer abc', 'abc']],
])('secretParameters: %j', (parameters, secrets) => {
  expect(secretParameters(parameters)).toEqual(secrets);
});
