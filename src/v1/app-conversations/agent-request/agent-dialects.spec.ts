import { describe, expect, it } from '@jest/globals';
import { commandServer, remoteServer } from '../../../../test/support/sample-tool-servers.js';
import type { JsonObject } from '@slipway/common/json-access.js';
import { AGENT_DIALECTS } from './agent-dialects.js';
import { type AgentSettings, agentSettings } from '@slipway/settings/agent-settings.js';
import type { AgentStart } from './agent-dialect.js';

const { slipway, stock } = AGENT_DIALECTS;

const SETTINGS: AgentSettings = {
  ...agentSettings(null, { llm_api_key: 'sk-model', search_api_key: null, sandbox_api_key: null }),
  llm_model: 'openai/gpt-4o',
};

const START: AgentStart = {
  acp: null,
  conversationId: '00000000-0000-4000-8000-000000000001',
  workingDir: '/workspace/slipway',
  ports: [],
  request: { initial_message: null, system_message_suffix: null, agent_type: 'default' },
  model: 'openai/gpt-4o',
  facts: { price: { input: 2.5, output: 10 }, contextWindow: 128_000 },
  settings: SETTINGS,
  config: { llmTimeoutSeconds: 120, condenserTokens: null, tavilyApiUrl: 'https://api.tavily.com' },
  mcpConfig: null,
  secrets: new Map(),
  git: null,
  outboundAllowlist: null,
  skills: [],
};

function withSettings(settings: Partial<AgentSettings>, start: Partial<AgentStart> = {}): AgentStart {
  return { ...START, ...start, settings: { ...SETTINGS, ...settings } };
}

describe('request', () => {
  it('fills every member for plain settings', () => {
    expect(slipway.request(START)).toEqual({
      conversation_id: START.conversationId,
      workspace: { kind: 'LocalWorkspace', working_dir: '/workspace/slipway' },
      agent: {
        kind: 'Agent',
        llm: {
          model: 'openai/gpt-4o',
          api_key: 'sk-model',
          base_url: null,
          timeout: 120,
          input_cost_per_token: 0.0000025,
          output_cost_per_token: 0.00001,
          usage_id: 'agent',
        },
        tools: [{ name: 'terminal' }, { name: 'file_editor' }, { name: 'task_tracker' }],
        condenser: { kind: 'LLMSummarizingCondenser', max_tokens: 76_800 },
        agent_context: { load_project_skills: true },
      },
      confirmation_policy: { kind: 'NeverConfirm' },
      security_analyzer: null,
      max_iterations: 500,
      stuck_detection: true,
      secrets: {},
      initial_message: null,
      slipway: {
        max_budget: null,
        language: null,
        search_api_key: null,
        tavily_api_url: 'https://api.tavily.com',
        model_prices: { 'openai/gpt-4o': { input: 2.5, output: 10 } },
        git: null,
        outbound_allowlist: null,
      },
    });
  });

  it.each([
    ['llm_model of the request', { ...START, model: 'o3' }, { agent: { llm: { model: 'o3' } } }],
    [
      'parameters of the model',
      withSettings({
        llm_parameters: {
          temperature: 0.5,
          max_output_tokens: 99,
          num_retries: 2,
          extra_headers: { 'x-team': 'blue', 'x-cost': 7, 'x-odd': null },
          litellm_extra_body: { user: 'me' },
          aws_secret_access_key: 'not for us',
        },
      }),
      {
        agent: {
          llm: {
            temperature: 0.5,
            max_output_tokens: 99,
            num_retries: 2,
            extra_headers: { 'x-team': 'blue', 'x-cost': '7' },
            litellm_extra_body: { user: 'me' },
          },
        },
      },
    ],
    [
      'llm_base_url',
      withSettings({ llm_base_url: 'https://llm.example.com/v1' }),
      { agent: { llm: { base_url: 'https://llm.example.com/v1' } } },
    ],
    ['a blank llm_base_url', withSettings({ llm_base_url: '' }), { agent: { llm: { base_url: null } } }],
    ['no llm_api_key', withSettings({ llm_api_key: null }), { agent: { llm: { api_key: null } } }],
    [
      'LLM_TIMEOUT_SECONDS',
      { ...START, config: { ...START.config, llmTimeoutSeconds: 7 } },
      { agent: { llm: { timeout: 7 } } },
    ],
    ['max_iterations', withSettings({ max_iterations: 3 }), { max_iterations: 3 }],
    ['max_budget_per_task', withSettings({ max_budget_per_task: 0.5 }), { slipway: { max_budget: 0.5 } }],
    ['language', withSettings({ language: 'de' }), { slipway: { language: 'de' } }],
    ['a blank language', withSettings({ language: '' }), { slipway: { language: null } }],
    ['search_api_key', withSettings({ search_api_key: 'tvly' }), { slipway: { search_api_key: 'tvly' } }],
    [
      'TAVILY_API_URL',
      { ...START, config: { ...START.config, tavilyApiUrl: 'http://t' } },
      { slipway: { tavily_api_url: 'http://t' } },
    ],
    ['no condenser', withSettings({ enable_default_condenser: false }), { agent: { condenser: null } }],
    [
      'AGENT_CONDENSER_TOKENS',
      { ...START, config: { ...START.config, condenserTokens: 5000 } },
      { agent: { condenser: { max_tokens: 5000 } } },
    ],
    [
      'a model of unknown size',
      { ...START, facts: { price: null, contextWindow: null } },
      { agent: { condenser: { max_tokens: 96_000 } } },
    ],
    [
      'confirmation_mode',
      withSettings({ confirmation_mode: true }),
      { confirmation_policy: { kind: 'AlwaysConfirm' }, security_analyzer: null },
    ],
    [
      'confirmation_mode with a blank analyzer',
      withSettings({ confirmation_mode: true, security_analyzer: '' }),
      { confirmation_policy: { kind: 'AlwaysConfirm' }, security_analyzer: null },
    ],
    [
      'confirmation_mode with llm',
      withSettings({ confirmation_mode: true, security_analyzer: 'llm' }),
      {
        confirmation_policy: { kind: 'ConfirmRisky', threshold: 'HIGH', confirm_unknown: true },
        security_analyzer: { kind: 'LLMSecurityAnalyzer' },
      },
    ],
    [
      'rails',
      withSettings({ confirmation_mode: true, security_analyzer: 'policy_rail' }),
      {
        confirmation_policy: { kind: 'ConfirmRisky', threshold: 'HIGH', confirm_unknown: true },
        security_analyzer: { kind: 'PolicyRailSecurityAnalyzer' },
      },
    ],
    [
      'an analyzer without confirmation_mode',
      withSettings({ security_analyzer: 'llm' }),
      { confirmation_policy: { kind: 'NeverConfirm' }, security_analyzer: null },
    ],
    [
      'custom secrets',
      {
        ...START,
        secrets: new Map([
          ['A', { value: '1', description: 'one' }],
          ['B', { value: '2', description: null }],
        ]),
      },
      {
        secrets: {
          A: { kind: 'StaticSecret', value: '1', description: 'one' },
          B: { kind: 'StaticSecret', value: '2' },
        },
      },
    ],
    [
      'the allowlist of outbound servers',
      { ...START, outboundAllowlist: ['models.example.com'] },
      { slipway: { outbound_allowlist: ['models.example.com'] } },
    ],
    [
      'git access',
      { ...START, git: { credentials: [], expose: true, identity: { name: 'Ada', email: 'a@example.com' } } },
      {
        slipway: {
          git: { credentials: [], expose: true, identity: { name: 'Ada', email: 'a@example.com' } },
        },
      },
    ],
    [
      'a first message',
      {
        ...START,
        request: {
          ...START.request,
          initial_message: { role: 'user', content: [{ type: 'text', text: 'Hi' }], run: false },
        },
      },
      { initial_message: { role: 'user', content: [{ type: 'text', text: 'Hi' }], run: true } },
    ],
    [
      'a suffix',
      { ...START, request: { ...START.request, system_message_suffix: 'Be brief.' } },
      { agent: { agent_context: { system_message_suffix: 'Be brief.' } } },
    ],
    [
      'ports',
      { ...START, ports: [{ name: 'WORKER_1', url: 'http://worker-1-x.localhost:3000/' }] },
      {
        agent: {
          agent_context: {
            system_message_suffix: expect.stringMatching(
              /\$LISTEN_HOST .*: \$WORKER_1 \(http:\/\/worker-1-x\.localhost:3000\/\)\./,
            ),
          },
        },
      },
    ],
    [
      'a plan',
      { ...START, request: { ...START.request, agent_type: 'plan' } },
      { agent: { agent_context: { system_message_suffix: expect.stringMatching(/plan only/) } } },
    ],
  ] satisfies [string, AgentStart, object][])('passes on: %s', (_, start, expected) => {
    expect(slipway.request(start)).toMatchObject(expected);
  });

  it.each([
    ['ours', slipway, { sender_conversation_id: START.conversationId }],
    ['of others, which would refuse that', stock, {}],
  ])('says which agent speaks first, to an agent server that is %s', (_, dialect, sender) => {
    const content = [{ type: 'text' as const, text: 'Hi' }];
    const { initial_message: message } = dialect.request({
      ...START,
      request: {
        ...START.request,
        initial_message: { role: 'user', content, run: true },
        started_by_agent: true,
        parent_conversation_id: START.conversationId,
      },
    });
    expect(message).toEqual({ role: 'user', content, run: true, ...sender });
  });

  it('includes every tool server of the user', () => {
    const { agent } = slipway.request({
      ...START,
      mcpConfig: [
        commandServer('files', { args: ['-y', 'files'], env: new Map([['TOKEN', 'k2']]) }),
        remoteServer('https://sse.example.com', { transport: 'sse', apiKey: 'k1' }),
        remoteServer('https://http.example.com'),
      ],
    });

    expect(agent.mcp_config).toEqual({
      sse_0: { url: 'https://sse.example.com', transport: 'sse', headers: { Authorization: 'Bearer k1' } },
      shttp_0: { url: 'https://http.example.com', transport: 'http' },
      files: { command: 'npx', args: ['-y', 'files'], env: { TOKEN: 'k2' } },
    });
  });

  // labring/FastGPT#6375, CopilotKit/OpenBot#332
  it.each([
    ['k1', 'Bearer k1'],
    ['Bearer k1', 'Bearer k1'],
    ['basic dTpw', 'basic dTpw'],
    ['Bearer', 'Bearer Bearer'],
  ])('sends the key of a tool server with one scheme: %s', (apiKey, authorization) => {
    const mcpConfig = [remoteServer('https://http.example.com', { apiKey })];
    const { agent } = slipway.request({ ...START, mcpConfig });
    expect(agent.mcp_config).toMatchObject({
      shttp_0: { headers: { Authorization: authorization } },
    });
  });

  it.each([
    ['slipway' as const, { tools: ['search'], start_timeout_seconds: 600 }],
    // It takes another kind of member by this name.
    ['stock' as const, {}],
  ])('names the allowed tools of a server to the agent server %s', (dialect, allowed) => {
    const details = { tools: ['search'], start_timeout_seconds: 600 };
    const { agent } = AGENT_DIALECTS[dialect].request({
      ...START,
      mcpConfig: [
        commandServer('files', { details }),
        remoteServer('https://sse.example.com', { transport: 'sse', details }),
      ],
    });
    expect(agent.mcp_config).toEqual({
      sse_0: { url: 'https://sse.example.com', transport: 'sse', ...allowed },
      files: { command: 'npx', args: [], env: {}, ...allowed },
    });
  });

  it('sends names that people chose as they are, whatever every object has already', () => {
    const name = '__proto__';
    const { secrets, agent } = slipway.request({
      ...START,
      secrets: new Map([[name, { value: 'of the user', description: null }]]),
      mcpConfig: [commandServer(name, { env: new Map([[name, 'k']]) })],
    });

    expect(JSON.stringify(secrets)).toBe('{"__proto__":{"kind":"StaticSecret","value":"of the user"}}');
    expect(JSON.stringify(agent.mcp_config)).toBe(
      '{"__proto__":{"command":"npx","args":[],"env":{"__proto__":"k"}}}',
    );
  });

  it.each([
    ['slipway' as const, { load_project_skills: true, disabled_skills: ['deploy', 'repo'] }],
    ['stock' as const, {}],
  ])('gives no skill to an agent on %s that its user disables', (dialect, context) => {
    const skill = (name: string) => ({ name, description: null, content: `How to ${name}.`, triggers: [] });
    const start = { skills: [skill('deploy'), skill('release')] };

    const { agent } = AGENT_DIALECTS[dialect].request(
      withSettings({ disabled_skills: ['deploy', 'repo'] }, start),
    );

    expect(agent.agent_context).toEqual({
      ...context,
      skills: [{ name: 'release', content: 'How to release.', trigger: null }],
    });
  });

  it('sends a stock agent server only what its schema knows', () => {
    const request = stock.request(
      withSettings({ language: 'fr', search_api_key: 'tvly', load_memory: true }),
    );

    expect(request).not.toHaveProperty('slipway');
    expect(JSON.stringify(request)).not.toContain('tvly');
    expect(request.agent).toMatchObject({
      condenser: {
        max_tokens: 76_800,
        llm: { model: 'openai/gpt-4o', api_key: 'sk-model', usage_id: 'condenser' },
      },
      agent_context: { load_memory: true, system_message_suffix: 'Answer in this language: fr.' },
    });
  });
});

it.each<[keyof typeof AGENT_DIALECTS, Partial<AgentSettings>, string[]]>([
  ['slipway', { max_budget_per_task: 1, search_api_key: 'tvly' }, []],
  ['slipway', { load_memory: true }, ['agent_context.load_memory']],
  ['stock', { load_memory: true }, []],
  ['stock', { max_budget_per_task: 1, search_api_key: 'tvly' }, ['max_budget_per_task', 'search_api_key']],
])('says to a user of the %s agent server what has no effect of %j', (dialect, change, names) => {
  const notes = AGENT_DIALECTS[dialect].ineffectiveSettings({ ...SETTINGS, ...change }, null);
  expect(notes.map((note) => /^[\w.]+/.exec(note)?.[0])).toEqual(names);
});

it('says to a user of the stock agent server that it knows no list of allowed tools', () => {
  const url = 'https://mcp.example.com';
  const notes = (dialect: keyof typeof AGENT_DIALECTS, details: JsonObject): string[] =>
    AGENT_DIALECTS[dialect].ineffectiveSettings(SETTINGS, [remoteServer(url, { details })]);
  expect(notes('stock', { tools: ['a'] })).toEqual([expect.stringContaining('offers all tools')]);
  expect(notes('stock', {})).toEqual([]);
  expect(notes('slipway', { tools: ['a'] })).toEqual([]);
});
