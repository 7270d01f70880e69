import { describe, expect, it } from '@jest/globals';
import { credentialsSchema, startSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import { newRecord, recordUpdate, toConversationInfo } from './conversation-record.js';

const MODEL = { model: 'openai/a', api_key: 'k' };
const PRICES = { 'openai/b': { input: 3, output: 15 } };
const llm = { model: 'openai/a', timeoutMs: 1, usageId: 'agent' };

const changes = (update: object, llmKeyNeeded = true) =>
  recordUpdate(
    { agent: { kind: 'Agent', llm: { model: 'openai/a', top_p: 1 } }, llm, llmKeyNeeded, secrets: {} },
    credentialsSchema.parse(update),
  );

it.each([
  [{}, {}],
  [{ max_budget: 2 }, { maxBudget: 2 }],
  [{ max_budget: 0 }, { maxBudget: 0 }],
  [{ max_iterations: 7 }, { maxIterations: 7 }],
  [{ max_budget: null }, { maxBudget: null }],
  [{ model_prices: PRICES }, { modelPrices: PRICES }],
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

describe('the agent as clients of the SDK read it', () => {
  const TOOL_SERVERS = { files: { command: 'npx', env: { TOKEN: 'k' }, auth: 'k', tools: ['search'] } };
  const shown = (agent: object, stored: object = {}) => {
    const request = startSchema.parse({ agent: { llm: MODEL, ...agent }, workspace: { working_dir: '/w' } });
    const record = newRecord('id', '/w', request);
    return toConversationInfo({ ...record, agent: { ...record.agent, ...stored } }, '/folder');
  };

  it.each([
    [
      'without a model',
      { max_tokens: 9 },
      { max_tokens: 9, llm: { model: 'openai/a', usage_id: 'condenser' } },
    ],
    ['with its own model', { llm: { model: 'openai/b' } }, { llm: { model: 'openai/b' } }],
  ])('has a condenser with a model: %s', (_, given, expected) => {
    const kind = 'LLMSummarizingCondenser';
    const llm = { ...expected.llm, is_subscription: false };
    expect(shown({ condenser: { kind, ...given } }).agent).toMatchObject({
      condenser: { kind, ...expected, llm },
    });
  });

  it.each([
    ['as stock agent servers take them', { mcp_config: TOOL_SERVERS }, {}],
    ['in the wrapper of other programs', { mcp_config: { mcpServers: TOOL_SERVERS } }, {}],
    ['in a record of an earlier version', {}, { mcp_config: { mcpServers: TOOL_SERVERS } }],
  ])('has the published members of tool servers: %s', (_, given, stored) => {
    const { mcp_config: servers } = shown(given, stored).agent;
    expect(servers).toMatchObject({ files: { command: 'npx' } });
    expect(Object.keys(Object(servers).files)).toEqual(['command', 'env']);
  });

  it('names the modules of the tools that it uses, because their events cannot be read without them', () => {
    const tools = [{ name: 'terminal' }, { name: 'task_tracker' }, { name: 'of_a_client' }];
    expect(shown({ tools }).tool_module_qualnames).toEqual({
      terminal: 'openhands.tools.terminal.definition',
      task_tracker: 'openhands.tools.task_tracker.definition',
    });
    expect(shown({ kind: 'ACPAgent', acp_command: ['agent'] }).tool_module_qualnames).toEqual({});
  });
});
