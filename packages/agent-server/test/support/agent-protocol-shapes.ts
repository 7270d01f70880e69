/*
 * What strict clients of agent servers accept, as facts: the members of each kind of event, of what is inside events,
 * and of answers. `?`: may be left out; `[]`: a list; `|`: one of them. In events nothing else may appear, and members
 * without a value are left out rather than null.
 */
const EVENT = 'id:text timestamp:time source:source kind:text';

const SHAPES: Record<string, string> = {
  MessageEvent: `${EVENT} llm_message:Message llm_response_id?:text activated_skills?:text[] extended_content?:TextContent[] sender?:text`,
  ActionEvent: `${EVENT} thought:TextContent[] reasoning_content?:text thinking_blocks?:any[] action?:kind tool_name:text tool_call_id:text tool_call:ToolCall llm_response_id:text security_risk?:risk summary?:text`,
  ObservationEvent: `${EVENT} tool_name:text tool_call_id:text observation:kind action_id:text`,
  AgentErrorEvent: `${EVENT} tool_name:text tool_call_id:text error:text`,
  UserRejectObservation: `${EVENT} tool_name:text tool_call_id:text action_id:text rejection_reason?:text rejection_source?:text`,
  ConversationStateUpdateEvent: `${EVENT} key?:text value?:any`,
  ACPToolCallEvent: `${EVENT} tool_call_id:text title:text status?:text tool_kind?:text raw_input?:any raw_output?:any content?:any[] is_error?:flag`,
  PauseEvent: EVENT,
  ConversationErrorEvent: `${EVENT} code:text detail:text`,
  SystemPromptEvent: `${EVENT} system_prompt:TextContent tools:kind[] dynamic_context?:TextContent`,
  Condensation: `${EVENT} forgotten_event_ids?:text[] summary?:text summary_offset?:number llm_response_id:text`,

  Message: 'role:text content?:content[] reasoning_content?:text',
  TextContent: 'type:text text:text cache_prompt?:flag',
  ImageContent: 'type:text image_urls:text[] cache_prompt?:flag',
  ToolCall: 'id:text name:text arguments:text origin:text',

  TerminalAction: 'kind:text command:text is_input?:flag timeout?:number reset?:flag',
  FileEditorAction:
    'kind:text command:text path:text file_text?:text old_str?:text new_str?:text insert_line?:number view_range?:number[]',
  TaskTrackerAction: 'kind:text command?:text task_list?:TaskItem[]',
  FinishAction: 'kind:text message:text',
  ThinkAction: 'kind:text thought:text',
  MCPToolAction: 'kind:text data?:any',
  TaskItem: 'title:text notes?:text status?:text',

  TerminalObservation:
    'kind:text content?:content[] is_error?:flag command:text|null exit_code?:number timeout?:flag metadata?:CommandMetadata full_output_save_dir?:text',
  CommandMetadata:
    'exit_code?:number pid?:number username?:text hostname?:text working_dir?:text py_interpreter_path?:text prefix?:text suffix?:text',
  FileEditorObservation:
    'kind:text content?:content[] is_error?:flag command:text path?:text prev_exist?:flag old_content?:text new_content?:text',
  TaskTrackerObservation: 'kind:text content?:content[] is_error?:flag command:text task_list?:TaskItem[]',
  FinishObservation: 'kind:text content?:content[] is_error?:flag',
  ThinkObservation: 'kind:text content?:content[] is_error?:flag',
  MCPToolObservation: 'kind:text content?:content[] is_error?:flag tool_name:text',

  ...Object.fromEntries(
    ['TerminalTool', 'FileEditorTool', 'TaskTrackerTool', 'FinishTool', 'ThinkTool'].map((kind) => [
      kind,
      'kind:text title:text description:text action_type:text observation_type?:text annotations?:any meta?:any',
    ]),
  ),
  MCPToolDefinition:
    'kind:text title:text description:text action_type:text mcp_tool:any observation_type?:text annotations?:any meta?:any',

  ConversationInfo:
    'id:uuid agent:any tool_module_qualnames:any workspace:LocalWorkspace persistence_dir:text max_iterations:number stuck_detection:flag execution_status:text confirmation_policy:kind security_analyzer:kind|null activated_knowledge_skills:text[] blocked_actions:any blocked_messages:any stats:any secret_registry:SecretRegistry agent_state:any title:text|null tags:any metrics:MetricsSnapshot|null error?:ConversationFailure created_at:text updated_at:text',
  ConversationFailure: 'code:text detail:text',
  ConversationPage: 'items:ConversationInfo[] next_page_id:text|null',
  LocalWorkspace: 'kind:text working_dir:text',
  NeverConfirm: 'kind:text',
  AlwaysConfirm: 'kind:text',
  ConfirmRisky: 'kind:text threshold:text confirm_unknown:flag',
  LLMSecurityAnalyzer: 'kind:text',
  SecretRegistry: 'secret_sources:any',
  MetricsSnapshot:
    'model_name:text accumulated_cost:number cost_source?:text max_budget_per_task:number|null accumulated_token_usage:TokenUsage|null',
  TokenUsage:
    'model:text prompt_tokens:number completion_tokens:number cache_read_tokens:number cache_write_tokens:number reasoning_tokens:number context_window:number per_turn_token:number response_id:text',
  EventPage: 'items:kind[] next_page_id:text|null',

  BashEventPage: 'items:kind[] next_page_id:text|null',
  BashCommand: 'kind:text id:text timestamp:time command:text cwd:text|null timeout:number',
  BashOutput:
    'kind:text id:text timestamp:time command_id:text order:number exit_code:number|null stdout:text|null stderr:text|null',
  ServerInfo:
    'uptime:number idle_time:number title:text version:text capabilities:text[] usable_tools:text[] docs:text redoc:text instance_id:uuid',
  GitChange: 'status:text path:text',
  GitDiff: 'modified:text|null original:text|null',
};

const PRIMITIVES: Record<string, (value: unknown) => boolean> = {
  text: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  flag: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  any: (value) => value !== undefined,
  time: (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/.test(value),
  uuid: (value) => typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value),
  source: (value) => ['agent', 'user', 'environment'].includes(String(value)),
  risk: (value) => ['UNKNOWN', 'LOW', 'MEDIUM', 'HIGH'].includes(String(value)),
};

/** Kinds that the table knows and that stand alone in a log. */
export const EVENT_KINDS = Object.keys(SHAPES).filter(
  // Our own agent calls its tools itself.
  (name) => SHAPES[name]?.startsWith(EVENT) && name !== 'ACPToolCallEvent',
);

/** Lists paths at which a value does not match a shape, and what is wrong there; empty when all is well. */
export function shapeProblems(shape: string, value: unknown, at = shape): string[] {
  const alternatives = shape.split('|');
  if (alternatives.length > 1) {
    const found = alternatives.map((one) => shapeProblems(one, value, at));
    return found.some((problems) => problems.length === 0) ? [] : found.flat();
  }
  if (shape.endsWith('[]')) {
    return Array.isArray(value)
      ? value.flatMap((item, index) => shapeProblems(shape.slice(0, -2), item, `${at}[${index}]`))
      : [`${at}: no list`];
  }
  const isRight = PRIMITIVES[shape];
  if (isRight !== undefined) {
    return isRight(value) ? [] : [`${at}: not ${shape}`];
  }
  return memberProblems(shapeOf(shape, value), value, at);
}

/** `kind` and `content` are told by a member of the value. */
function shapeOf(shape: string, value: unknown): string {
  const members: Record<string, unknown> = { ...Object(value) };
  if (shape === 'kind') {
    return String(members['kind']);
  }
  if (shape === 'content') {
    return members['type'] === 'image' ? 'ImageContent' : 'TextContent';
  }
  return shape;
}

function memberProblems(name: string, value: unknown, at: string): string[] {
  const shape = SHAPES[name];
  if (shape === undefined || typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [`${at}: no ${name}`];
  }
  const given = new Map<string, unknown>(Object.entries(value));
  const problems: string[] = [];
  for (const member of shape.split(' ')) {
    const [, key = '', optional, type = ''] = /^([a-z_]+)(\?)?:(.+)$/.exec(member) ?? [];
    if (given.has(key)) {
      problems.push(...shapeProblems(type, given.get(key), `${at}.${key}`));
    } else if (optional === undefined) {
      problems.push(`${at}.${key}: missing`);
    }
    given.delete(key);
  }
  return [...problems, ...[...given.keys()].map((key) => `${at}.${key}: not known`)];
}
