import { describe, expect, it } from '@jest/globals';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { AGENT_DIALECTS } from './agent-dialects.js';
import { agentSettings } from '@slipway/settings/agent-settings.js';
import { type CheckedSettings, checkSettings } from './settings-check.js';
import { remoteServer } from '../../../../test/support/sample-tool-servers.js';

const USABLE: CheckedSettings = {
  agent: { name: null, acp: null, listed: [] },
  model: 'openai/gpt-4o',
  settings: agentSettings(null, { llm_api_key: 'sk-model', search_api_key: null, sandbox_api_key: null }),
  mcpConfig: null,
  dialect: AGENT_DIALECTS.slipway,
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
    [
      'a provider that the stock server knows',
      settings({}, { model: 'mistral/large', dialect: AGENT_DIALECTS.stock }),
    ],
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
      settings({}, { mcpConfig: [remoteServer('https://evil.example.com')] }),
      'mcp_config',
    ],
  ])('names the setting to mend: %s', (_, checked, name) => {
    expect(checkSettings(checked, LISTED).problem).toContain(name);
  });
});
