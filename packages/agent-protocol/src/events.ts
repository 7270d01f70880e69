export interface TaskItem {
  title: string;
  notes: string;
  status: 'todo' | 'in_progress' | 'done';
}

export interface TerminalAction {
  kind: 'TerminalAction';
  command: string;
  /** Input for the running program, not a new command. */
  is_input: boolean;
  timeout?: number | null;
  reset: boolean;
}

type FileEditorCommand = 'view' | 'create' | 'str_replace' | 'insert' | 'undo_edit';

export interface FileEditorAction {
  kind: 'FileEditorAction';
  command: FileEditorCommand;
  path: string;
  file_text?: string | null;
  old_str?: string | null;
  new_str?: string | null;
  insert_line?: number | null;
  view_range?: number[] | null;
}

export interface TaskTrackerAction {
  kind: 'TaskTrackerAction';
  command: 'view' | 'plan';
  task_list: TaskItem[];
}

export interface FinishAction {
  kind: 'FinishAction';
  message: string;
}

export interface ThinkAction {
  kind: 'ThinkAction';
  thought: string;
}

/** Also used for tools of ours without a kind in the published schema. */
export interface MCPToolAction {
  kind: 'MCPToolAction';
  data: Record<string, unknown>;
}

export type Action =
  TerminalAction | FileEditorAction | TaskTrackerAction | FinishAction | ThinkAction | MCPToolAction;

export interface TextContent {
  type: 'text';
  text: string;
  cache_prompt?: boolean;
}

interface ImageContent {
  type: 'image';
  image_urls: string[];
  cache_prompt?: boolean;
}

export type Content = TextContent | ImageContent;

/** -1 means "unknown". */
interface CommandMetadata {
  exit_code: number;
  pid: number;
  username?: string | null;
  hostname?: string | null;
  working_dir?: string | null;
  py_interpreter_path?: string | null;
  prefix: string;
  suffix: string;
}

interface ObservationBase {
  content: Content[];
  is_error: boolean;
}

export interface TerminalObservation extends ObservationBase {
  kind: 'TerminalObservation';
  command: string | null;
  exit_code?: number | null;
  timeout: boolean;
  metadata: CommandMetadata;
  full_output_save_dir?: string | null;
}

export interface FileEditorObservation extends ObservationBase {
  kind: 'FileEditorObservation';
  command: FileEditorCommand;
  path?: string | null;
  prev_exist: boolean;
  old_content?: string | null;
  new_content?: string | null;
}

export interface TaskTrackerObservation extends ObservationBase {
  kind: 'TaskTrackerObservation';
  command: 'view' | 'plan';
  task_list: TaskItem[];
}

export interface FinishObservation extends ObservationBase {
  kind: 'FinishObservation';
}

export interface ThinkObservation extends ObservationBase {
  kind: 'ThinkObservation';
}

export interface MCPToolObservation extends ObservationBase {
  kind: 'MCPToolObservation';
  tool_name: string;
}

export type Observation =
  | TerminalObservation
  | FileEditorObservation
  | TaskTrackerObservation
  | FinishObservation
  | ThinkObservation
  | MCPToolObservation;

interface ToolAnnotations {
  title?: string | null;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

interface ToolDefinitionBase {
  title: string;
  description: string;
  action_type: string;
  observation_type?: string | null;
  annotations?: ToolAnnotations | null;
  meta?: Record<string, unknown> | null;
}

interface BuiltInToolDefinition extends ToolDefinitionBase {
  kind: 'TerminalTool' | 'FileEditorTool' | 'TaskTrackerTool' | 'FinishTool' | 'ThinkTool';
}

/** Also used for tools of ours without a kind in the published schema. */
export interface McpToolDefinition extends ToolDefinitionBase {
  kind: 'MCPToolDefinition';
  mcp_tool: { name: string; description?: string; inputSchema: Record<string, unknown> };
}

export type ToolDefinition = BuiltInToolDefinition | McpToolDefinition;

/** Clients parse events strictly: a member that is not in these types makes them reject the whole event. */

type EventSource = 'agent' | 'user' | 'environment';

interface EventBase {
  id: string;
  /** ISO 8601, UTC, without a zone: `2026-01-31T12:00:00.000000`. */
  timestamp: string;
  source: EventSource;
}

interface ToolCall {
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
  origin: 'completion' | 'responses';
}

type ThinkingBlock =
  | { type: 'thinking'; thinking: string; signature?: string | null }
  | { type: 'redacted_thinking'; data: string };

interface Message {
  role: 'user' | 'system' | 'assistant' | 'tool';
  content: Content[];
  tool_calls?: ToolCall[] | null;
  tool_call_id?: string | null;
  name?: string | null;
  reasoning_content?: string | null;
  thinking_blocks?: ThinkingBlock[];
}

export interface MessageEvent extends EventBase {
  kind: 'MessageEvent';
  llm_message: Message;
  llm_response_id?: string | null;
  activated_skills: string[];
  extended_content: TextContent[];
  sender?: string | null;
}

export type SecurityRisk = 'UNKNOWN' | 'LOW' | 'MEDIUM' | 'HIGH';

/** Written before the tool runs. */
export interface ActionEvent extends EventBase {
  kind: 'ActionEvent';
  source: 'agent';
  thought: TextContent[];
  reasoning_content?: string | null;
  thinking_blocks: ThinkingBlock[];
  action?: Action | null;
  tool_name: string;
  tool_call_id: string;
  tool_call: ToolCall;
  llm_response_id: string;
  security_risk: SecurityRisk;
  summary?: string | null;
}

export interface ObservationEvent extends EventBase {
  kind: 'ObservationEvent';
  source: 'environment';
  tool_name: string;
  tool_call_id: string;
  observation: Observation;
  action_id: string;
}

/** Agents that run their own tools write an event at the begin of a call, and one with the same id at its end. */
export interface ACPToolCallEvent extends EventBase {
  kind: 'ACPToolCallEvent';
  source: 'agent';
  tool_call_id: string;
  title: string;
  status?: 'pending' | 'in_progress' | 'completed' | 'failed' | null;
  tool_kind?: string | null;
  raw_input?: unknown;
  raw_output?: unknown;
  content?: Record<string, unknown>[] | null;
  is_error: boolean;
}

/** Closes a tool call without an observation: invalid arguments, a failed tool, an interrupted run. */
export interface AgentErrorEvent extends EventBase {
  kind: 'AgentErrorEvent';
  source: 'agent';
  tool_name: string;
  tool_call_id: string;
  error: string;
}

export interface UserRejectObservation extends EventBase {
  kind: 'UserRejectObservation';
  source: 'environment';
  tool_name: string;
  tool_call_id: string;
  rejection_reason: string;
  rejection_source: 'user' | 'hook';
  action_id: string;
}

export interface ConversationStateUpdateEvent extends EventBase {
  kind: 'ConversationStateUpdateEvent';
  source: 'environment';
  /** `full_state`, `execution_status`, `stats` or `goal`. */
  key: string;
  value: unknown;
}

interface PauseEvent extends EventBase {
  kind: 'PauseEvent';
  source: 'user';
}

interface ConversationErrorEvent extends EventBase {
  kind: 'ConversationErrorEvent';
  /** For example `MaxIterationsReached`. */
  code: string;
  detail: string;
}

export interface SystemPromptEvent extends EventBase {
  kind: 'SystemPromptEvent';
  source: 'agent';
  system_prompt: TextContent;
  tools: ToolDefinition[];
  dynamic_context?: TextContent | null;
}

/** From here on, the model sees the summary in place of the forgotten events. */
export interface Condensation extends EventBase {
  kind: 'Condensation';
  source: 'environment';
  forgotten_event_ids: string[];
  summary?: string | null;
  summary_offset?: number | null;
  llm_response_id: string;
}

export type AgentEvent =
  | MessageEvent
  | ActionEvent
  | ObservationEvent
  | AgentErrorEvent
  | UserRejectObservation
  | ACPToolCallEvent
  | ConversationStateUpdateEvent
  | PauseEvent
  | ConversationErrorEvent
  | SystemPromptEvent
  | Condensation;

export interface EventPage {
  items: AgentEvent[];
  next_page_id: string | null;
}
