import { expect, it } from '@jest/globals';
import { credentialsSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import { recordUpdate } from './conversation-record.js';

const llm = { model: 'openai/a', timeoutMs: 1, usageId: 'agent' };

const changes = (update: object, llmKeyNeeded = true) =>
  recordUpdate(
    { agent: { kind: 'Agent', llm: { model: 'openai/a', top_p: 1 } }, llm, llmKeyNeeded, secrets: {} },
    credentialsSchema.parse(update),
  );

it.each([
  [{}, {}],
  [{ max_budget: 2 }, { maxBudget: 2 }],
  [
    { max_budget: 0, max_iterations: 7 },
    { maxBudget: 0, maxIterations: 7 },
  ],
  [{ max_budget: null }, { maxBudget: null }],
  [
    { model_prices: { 'openai/b': { input: 3, output: 15 } } },
    { modelPrices: { 'openai/b': { input: 3, output: 15 } } },
  ],
  // Whatever decides where secrets are sent is in memory only.
  [
    { language: null, outbound_allowlist: ['a.example.com'], tavily_api_url: 'https://b.example.com' },
    { language: null },
  ],
  [
    { llm_model: 'openai/b', llm_base_url: 'https://c.example.com' },
    {
      llm: { ...llm, model: 'openai/b' },
      agent: { kind: 'Agent', llm: { model: 'openai/b', top_p: 1 } },
    },
  ],
])('%j changes %j and nothing else', (update, expected) => {
  expect(changes(update)).toEqual({ llmKeyNeeded: true, secrets: {}, ...expected });
});

it.each([
  [true, {}, true],
  [false, {}, false],
  [false, { llm_api_key: 'key' }, true],
  [true, { llm_api_key: null }, false],
  [true, { llm_key_withheld: true }, true],
  [true, { llm_key_withheld: true, llm_api_key: null }, true],
  [false, { llm_key_withheld: true }, false],
])('a key is needed: %s, after %j: %s', (before, update, after) => {
  expect(changes(update, before)).toMatchObject({ llmKeyNeeded: after });
});

it.each([{ max_budget: -1 }, { max_iterations: 0 }, { max_iterations: 1.5 }, { max_iterations: null }])(
  'refuses %j',
  (update) => {
    expect(credentialsSchema.safeParse(update).success).toBe(false);
  },
);
