import { expect, it } from '@jest/globals';
import { recordChanges, redactAgent } from './conversation-record.js';
import { credentialsSchema } from './schemas.js';

const changes = (update: object, llmKeyNeeded = true) =>
  recordChanges({ llmKeyNeeded, secrets: {} }, credentialsSchema.parse(update));

it.each([
  [{}, {}],
  [{ max_budget: 2 }, { maxBudget: 2 }],
  [
    { max_budget: 0, max_iterations: 7 },
    { maxBudget: 0, maxIterations: 7 },
  ],
  [{ max_budget: null }, { maxBudget: null }],
  [
    { language: null, outbound_allowlist: ['a.example.com'] },
    { language: null, outboundAllowlist: ['a.example.com'] },
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

it('keeps everything but secrets', () => {
  const agent = {
    kind: 'Agent',
    llm: {
      model: 'm',
      api_key: 'k1',
      base_url: 'https://user:k2@llm.example/v1',
      extra_headers: { 'X-Key': 'k3' },
      max_output_tokens: 7,
    },
    condenser: { kind: 'LLMSummarizingCondenser', llm: { model: 'm', api_key: 'k4' } },
    mcp_config: {
      mcpServers: {
        a: { command: 'c', args: ['x'], env: { TOKEN: 'k5' } },
        b: { url: 'https://b', auth: 'k6' },
      },
    },
    agent_context: { secrets: { NAME: { kind: 'StaticSecret', value: 'k7' } } },
    tools: [{ name: 'terminal', params: {} }],
  };
  const redacted = redactAgent(agent);
  expect(JSON.stringify(redacted)).not.toMatch(/k\d/);
  expect(redacted).toMatchObject({
    llm: {
      model: 'm',
      api_key: '**********',
      base_url: 'https://**********@llm.example/v1',
      max_output_tokens: 7,
    },
    mcp_config: { mcpServers: { a: { command: 'c', args: ['x'], env: { TOKEN: '**********' } } } },
    tools: [{ name: 'terminal', params: {} }],
  });
});
