import {
  actionEvent,
  condensationEvent,
  errorEvent,
  messageEvent,
  observationEvent,
  systemPromptEvent,
} from './sample-events.js';

type Json = Record<string, unknown>;

const EVENT = { timestamp: '2026-01-31T12:00:00.000000', source: 'environment' };
const OF_CALL = { tool_name: 'think', tool_call_id: 'call' };

/** One event of every kind that the stock agent server publishes, by kind; its webhook sends lists of them. */
export const STOCK_EVENTS: Record<string, Json> = {
  Condensation: { ...condensationEvent('condensation', ['said'], 'So far: hello.', 1) },
  CondensationRequest: { kind: 'CondensationRequest', id: 'condense', ...EVENT },
  CondensationSummaryEvent: { kind: 'CondensationSummaryEvent', id: 'summary', ...EVENT, summary: 'So far.' },
  ConversationErrorEvent: {
    kind: 'ConversationErrorEvent',
    id: 'failed',
    ...EVENT,
    code: 'LLMAuthenticationError',
    detail: 'The key was refused.',
  },
  ConversationStateUpdateEvent: {
    kind: 'ConversationStateUpdateEvent',
    id: 'state',
    ...EVENT,
    key: 'execution_status',
    value: 'running',
  },
  LLMCompletionLogEvent: {
    kind: 'LLMCompletionLogEvent',
    id: 'completion',
    ...EVENT,
    filename: 'completion.json',
    log_data: '{"messages":[]}',
    model_name: 'openai/gpt-4o',
    usage_id: 'agent',
  },
  ActionEvent: {
    ...actionEvent('call', 'answer'),
    // Kept by the server where ours leaves them out.
    reasoning_content: null,
    responses_reasoning_item: null,
    critic_result: null,
  },
  MessageEvent: { ...messageEvent('said', 'user', 'hello'), llm_response_id: null, sender: null },
  AgentErrorEvent: { ...errorEvent('call', 'no such tool') },
  ObservationEvent: { ...observationEvent('call', 'hm') },
  UserRejectObservation: {
    kind: 'UserRejectObservation',
    id: 'rejected',
    ...EVENT,
    ...OF_CALL,
    action_id: 'call',
    rejection_reason: 'Not this file.',
    rejection_source: 'user',
  },
  SystemPromptEvent: {
    ...systemPromptEvent('You are an agent.'),
    tools: [
      {
        kind: 'TerminalTool',
        title: 'terminal',
        description: 'Runs commands.',
        action_type: 'TerminalAction',
      },
    ],
    dynamic_context: null,
  },
  TokenEvent: {
    kind: 'TokenEvent',
    id: 'tokens',
    ...EVENT,
    prompt_token_ids: [1, 2],
    response_token_ids: [3],
  },
  PauseEvent: { kind: 'PauseEvent', id: 'paused', ...EVENT, source: 'user' },
  InterruptEvent: { kind: 'InterruptEvent', id: 'interrupted', ...EVENT, source: 'user' },
  ACPToolCallEvent: {
    kind: 'ACPToolCallEvent',
    id: 'acp-call',
    ...EVENT,
    source: 'agent',
    tool_call_id: 'call',
    title: 'ls',
    status: 'completed',
    tool_kind: 'execute',
    raw_input: { command: 'ls' },
    raw_output: null,
    content: [],
    is_error: false,
  },
  HookExecutionEvent: {
    kind: 'HookExecutionEvent',
    id: 'hook',
    ...EVENT,
    source: 'hook',
    hook_event_type: 'PreToolUse',
    hook_command: 'make lint',
    tool_name: 'terminal',
    success: true,
    blocked: false,
    exit_code: 0,
    stdout: '',
    stderr: '',
    reason: null,
  },
  SecurityAnalysisEvent: {
    kind: 'SecurityAnalysisEvent',
    id: 'judged',
    ...EVENT,
    analyzer: 'PatternSecurityAnalyzer',
    policy: 'ConfirmRisky',
    risks: { call: 'LOW' },
    details: {},
  },
  ServerErrorEvent: { kind: 'ServerErrorEvent', id: 'server', ...EVENT, code: 'X', detail: 'It broke.' },
  StreamingDeltaEvent: { kind: 'StreamingDeltaEvent', id: 'delta', ...EVENT, source: 'agent', content: 'he' },
};

/** A conversation as the stock agent server answers it, and as its webhook sends it. */
export function stockConversation(id: string, status: unknown = 'idle'): Json {
  const llm = {
    model: 'openai/gpt-4o',
    api_key: '**********',
    base_url: null,
    usage_id: 'agent',
    is_subscription: false,
  };
  const metrics = {
    model_name: 'openai/gpt-4o',
    accumulated_cost: 0.25,
    max_budget_per_task: null,
    accumulated_token_usage: {
      model: 'openai/gpt-4o',
      prompt_tokens: 1200,
      completion_tokens: 80,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      context_window: 128_000,
      per_turn_token: 1280,
      response_id: 'answer',
    },
  };
  return {
    id,
    agent: {
      kind: 'Agent',
      llm,
      tools: [{ name: 'terminal', params: {} }],
      condenser: {
        kind: 'LLMSummarizingCondenser',
        llm: { ...llm, usage_id: 'condenser' },
        max_tokens: 76_800,
      },
    },
    workspace: { kind: 'LocalWorkspace', working_dir: '/workspace/project' },
    persistence_dir: 'workspace/conversations',
    max_iterations: 500,
    stuck_detection: true,
    execution_status: status,
    confirmation_policy: { kind: 'ConfirmRisky', threshold: 'HIGH', confirm_unknown: true },
    security_analyzer: { kind: 'LLMSecurityAnalyzer' },
    activated_knowledge_skills: [],
    blocked_actions: {},
    blocked_messages: {},
    stats: {
      usage_to_metrics: { agent: { ...metrics, costs: [], response_latencies: [], token_usages: [] } },
    },
    secret_registry: { secret_sources: { TOKEN: { kind: 'StaticSecret', value: null, description: null } } },
    agent_state: {},
    metrics,
    created_at: '2026-01-31T12:00:00.000000Z',
    updated_at: '2026-01-31T12:00:00.000000Z',
  };
}
