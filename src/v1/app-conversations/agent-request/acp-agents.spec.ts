import { describe, expect, it } from '@jest/globals';
import { type AcpAgent, acpLimitations, toStartedAcpAgent } from './acp-agents.js';

const AGENT: AcpAgent = {
  name: 'own',
  command: 'own-agent',
  args: ['--acp'],
  env: { PLAIN: 'yes', URL: '${llm_base_url}/v1', KEY: '${llm_api_key}', BOTH: '${llm_model}:${TOKEN}' },
  secrets: ['llm_api_key', 'TOKEN'],
  model: null,
  mode: 'plan',
  auth_method: null,
  install: null,
  hosts: [],
  credentials: null,
};
const SETTINGS = {
  llm_model: 'openai/x',
  llm_base_url: 'http://llm.example',
  llm_api_key: 'sk-model',
  search_api_key: 'tvly',
};
const SECRETS = new Map([
  ['TOKEN', { value: 'token-value', description: 'a token' }],
  ['OTHER', { value: 'other-value', description: null }],
]);

describe('toStartedAcpAgent', () => {
  it('gives what is named, and makes secrets of variables that hold one', () => {
    const { spec, secrets, notes } = toStartedAcpAgent(AGENT, SETTINGS, SECRETS, null);
    expect(spec).toEqual({
      acp_command: ['own-agent', '--acp'],
      acp_env: { PLAIN: 'yes', URL: 'http://llm.example/v1' },
      acp_model: null,
      acp_session_mode: 'plan',
      acp_auth_method: null,
    });
    expect([...secrets].map(([name, { value }]) => [name, value])).toEqual([
      ['TOKEN', 'token-value'],
      ['KEY', 'sk-model'],
      ['BOTH', 'openai/x:token-value'],
    ]);
    expect(notes).toEqual([]);
  });

  it('leaves out what has no value, and says so', () => {
    const { spec, secrets, notes } = toStartedAcpAgent(
      AGENT,
      { ...SETTINGS, llm_base_url: null, llm_api_key: '' },
      new Map(),
      null,
    );
    expect(spec.acp_env).toEqual({ PLAIN: 'yes' });
    expect(secrets.size).toBe(0);
    expect(notes).toEqual(['acp:own starts without URL, KEY, BOTH: your settings have no value for it.']);
  });

  it.each([
    [null, null, null],
    ['fixed', null, 'fixed'],
    ['${llm_model}', null, 'openai/x'],
    ['fixed', 'of the request', 'of the request'],
  ])('model %s of the list, %s of the request: %s', (model, requested, expected) => {
    expect(toStartedAcpAgent({ ...AGENT, model }, SETTINGS, SECRETS, requested).spec.acp_model).toBe(
      expected,
    );
  });
});

describe('acpLimitations', () => {
  const ALL = { loadSession: true, image: true, mcpHttp: true, mcpSse: true };

  it.each([
    [ALL, { hasBudget: false, remoteServers: ['http', 'sse'] as const }, []],
    [
      { ...ALL, loadSession: false },
      { hasBudget: false, remoteServers: [] },
      ['cannot load earlier sessions'],
    ],
    [{ ...ALL, image: false }, { hasBudget: false, remoteServers: [] }, ['cannot read images']],
    [
      { ...ALL, mcpHttp: false },
      { hasBudget: false, remoteServers: ['http', 'http', 'sse'] as const },
      ['over http'],
    ],
    [
      { ...ALL, mcpSse: false },
      { hasBudget: true, remoteServers: ['sse'] as const },
      ['over sse', 'max_budget_per_task'],
    ],
  ])('%j %j: %j', (abilities, start, expected) => {
    const limitations = acpLimitations(abilities, start);
    expect(limitations).toHaveLength(expected.length);
    expected.forEach((words, index) => expect(limitations[index]).toContain(words));
  });
});
