import { describe, expect, it } from '@jest/globals';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import type { ClearMcpConfig } from '../../../settings/mcp/mcp-config.types.js';
import {
  type AgentDialect,
  agentLimits,
  agentSettings,
  type CheckedSettings,
  checkSettings,
  ineffectiveSettings,
} from './agent-settings.js';

it.each([
  [
    { max_iterations: null, max_budget_per_task: null },
    { max_iterations: 500, max_budget: null },
  ],
  [
    { max_iterations: 7, max_budget_per_task: 0 },
    { max_iterations: 7, max_budget: 0 },
  ],
])('%j: %j', (settings, expected) => {
  expect(agentLimits(settings)).toEqual(expected);
});

const USABLE: CheckedSettings = {
  agent: { name: null, acp: null, listed: [] },
  model: 'openai/gpt-4o',
  settings: agentSettings(null, { llm_api_key: 'sk-model', search_api_key: null, sandbox_api_key: null }),
  mcpConfig: null,
  dialect: 'slipway',
};

const ANYWHERE = new OutboundAddresses(null);
const LISTED = new OutboundAddresses(['llm.example.com']);

function settings(
  change: Partial<CheckedSettings['settings']>,
  rest: Partial<CheckedSettings> = {},
): CheckedSettings {
  return { ...USABLE, ...rest, settings: { ...USABLE.settings, ...change } };
}

describe('checkSettings', () => {
  it.each<[string, CheckedSettings]>([
    ['plain', USABLE],
    ['CodeActAgent', settings({}, { agent: { name: 'CodeActAgent', acp: null, listed: [] } })],
    ['a blank agent', settings({}, { agent: { name: '', acp: null, listed: [] } })],
    ['analyzer llm', settings({ security_analyzer: 'llm' })],
    ['analyzer pattern', settings({ security_analyzer: 'pattern' })],
    ['analyzer policy_rail', settings({ security_analyzer: 'policy_rail' })],
    ['a blank analyzer', settings({ security_analyzer: '' })],
    [
      "the user's own model server without a key",
      settings({ llm_api_key: null, llm_base_url: 'http://localhost:11434' }),
    ],
    [
      'a provider with its address',
      settings({ llm_base_url: 'https://x.example.com' }, { model: 'mistral/large' }),
    ],
    ['a provider that the stock server knows', settings({}, { model: 'mistral/large', dialect: 'stock' })],
    ['anthropic without an address', settings({}, { model: 'anthropic/claude-sonnet-4-5' })],
  ])('accepts %s', (_, checked) => {
    expect(checkSettings(checked, ANYWHERE)).toEqual({ problem: null, model: checked.model });
  });

  it.each([
    ['no model', settings({}, { model: null }), 'llm_model'],
    ['a blank model', settings({}, { model: ' ' }), 'llm_model'],
    ['no key', settings({ llm_api_key: null }), 'llm_api_key'],
    ['no key for Anthropic', settings({ llm_api_key: '' }, { model: 'anthropic/claude' }), 'llm_api_key'],
    ['a provider without its address', settings({}, { model: 'azure/large' }), 'llm_base_url'],
    ['litellm_proxy without its address', settings({}, { model: 'litellm_proxy/x' }), 'llm_base_url'],
    [
      'another agent',
      settings({}, { agent: { name: 'BrowsingAgent', acp: null, listed: ['acp:own'] } }),
      'BrowsingAgent: set agent to CodeActAgent or acp:own',
    ],
    ['another analyzer', settings({ security_analyzer: 'invariant' }), 'invariant'],
    [
      'a model server that is not listed',
      settings({ llm_base_url: 'https://evil.example.com' }),
      'llm_base_url',
    ],
    [
      'a tool server that is not listed',
      settings(
        {},
        {
          mcpConfig: {
            sseServers: [],
            stdioServers: [],
            shttpServers: [{ url: 'https://evil.example.com', apiKey: null }],
          },
        },
      ),
      'mcp_config',
    ],
  ])('names the setting to mend: %s', (_, checked, name) => {
    expect(checkSettings(checked, LISTED).problem).toContain(name);
  });
});

it.each<[AgentDialect, Partial<CheckedSettings['settings']>, string[]]>([
  ['slipway', { max_budget_per_task: 1, search_api_key: 'tvly' }, []],
  ['slipway', { load_memory: true }, ['agent_context.load_memory']],
  ['stock', { load_memory: true }, []],
  ['stock', { max_budget_per_task: 1, search_api_key: 'tvly' }, ['max_budget_per_task', 'search_api_key']],
])('says to a user of the %s agent server what has no effect of %j', (dialect, change, names) => {
  const notes = ineffectiveSettings(dialect, settings(change).settings, null);
  expect(notes.map((note) => /^[\w.]+/.exec(note)?.[0])).toEqual(names);
});

it('says to a user of the stock agent server that it knows no list of allowed tools', () => {
  const url = 'https://mcp.example.com';
  const config = (details: object): ClearMcpConfig => ({
    sseServers: [],
    stdioServers: [],
    shttpServers: [{ url, apiKey: null, details: { ...details } }],
  });
  const notes = (dialect: AgentDialect, details: object): string[] =>
    ineffectiveSettings(dialect, settings({}).settings, config(details));
  expect(notes('stock', { tools: ['a'] })).toEqual([expect.stringContaining('offers all tools')]);
  expect(notes('stock', {})).toEqual([]);
  expect(notes('slipway', { tools: ['a'] })).toEqual([]);
});
