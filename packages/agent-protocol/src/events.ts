import type { z } from 'zod';
import { jsonText } from '@slipway/common/json-access.js';
import type {
  content,
  eventSchema,
  message,
  securityRisk,
  textContent,
  thinkingBlock,
} from './event-schemas.js';

export interface TaskItem {
  title: string;
  notes: string;
  status: 'todo' | 'in_progress' | 'done';
}

interface TerminalAction {
  kind: 'TerminalAction';
  command: string;
  /** Input for the running program, not a new command. */
  is_input: boolean;
  timeout?: number | null;
  reset: boolean;
}

type FileEditorCommand = 'view' | 'create' | 'str_replace' | 'insert' | 'undo_edit';

interface FileEditorAction {
  kind: 'FileEditorAction';
  command: FileEditorCommand;
  path: string;
  file_text?: string | null;
  old_str?: string | null;
  new_str?: string | null;
  insert_line?: number | null;
  view_range?: number[] | null;
}

interface TaskTrackerAction {
  kind: 'TaskTrackerAction';
  command: 'view' | 'plan';
  task_list: TaskItem[];
}

export interface FinishAction {
  kind: 'FinishAction';
  message: string;
}

interface ThinkAction {
  kind: 'ThinkAction';
  thought: string;
}

/** Also used for tools of ours without a kind in the published schema. */
interface MCPToolAction {
  kind: 'MCPToolAction';
  data: Record<string, unknown>;
}

export type Action =
  TerminalAction | FileEditorAction | TaskTrackerAction | FinishAction | ThinkAction | MCPToolAction;

export type TextContent = z.infer<typeof textContent>;

export type Content = z.infer<typeof content>[number];

/** -1 means "unknown". */
interface CommandMetadata {
  exit_code: number;
  pid: number;
  working_dir?: string | null;
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
}

export interface FileEditorObservation extends ObservationBase {
  kind: 'FileEditorObservation';
  command: FileEditorCommand;
  path?: string | null;
  prev_exist: boolean;
  old_content?: string | null;
  new_content?: string | null;
}

interface TaskTrackerObservation extends ObservationBase {
  kind: 'TaskTrackerObservation';
  command: 'view' | 'plan';
  task_list: TaskItem[];
}

/** Has nothing to add to its content. */
export interface PlainObservation extends ObservationBase {
  kind: 'FinishObservation' | 'ThinkObservation';
}

interface MCPToolObservation extends ObservationBase {
  kind: 'MCPToolObservation';
  tool_name: string;
}

export type Observation =
  | TerminalObservation
  | FileEditorObservation
  | TaskTrackerObservation
  | PlainObservation
  | MCPToolObservation;

interface ToolDefinitionBase {
  title: string;
  description: string;
  action_type: string;
  observation_type: string;
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

type LoggedEvent = z.infer<typeof eventSchema>;

/**
 * An event as we write it: with members that other agent servers may leave out, and none besides those of the schema,
 * because clients parse events strictly and reject one with an unknown member.
 */
type Written<Kind extends LoggedEvent['kind'], Members extends object = object> = Members & {
  source: Exclude<LoggedEvent['source'], 'hook'>;
} & Omit<Extract<LoggedEvent, { kind: Kind }>, keyof Members | 'source'>;

type ByAgent = { source: 'agent' };
type ByEnvironment = { source: 'environment' };

export type MessageEvent = Written<
  'MessageEvent',
  {
    llm_message: z.infer<typeof message> & { content: Content[] };
    activated_skills: string[];
    extended_content: TextContent[];
  }
>;

export type SecurityRisk = z.infer<typeof securityRisk>;

/** Written before the tool runs. */
export type ActionEvent = Written<
  'ActionEvent',
  ByAgent & {
    thinking_blocks: z.infer<typeof thinkingBlock>[];
    action?: Action | null;
    security_risk: SecurityRisk;
  }
>;

export type ObservationEvent = Written<'ObservationEvent', ByEnvironment & { observation: Observation }>;

/** Agents that run their own tools write an event at the begin of a call, and one with the same id at its end. */
export type ACPToolCallEvent = Written<
  'ACPToolCallEvent',
  ByAgent & {
    status?: 'pending' | 'in_progress' | 'completed' | 'failed' | null;
    content?: Record<string, unknown>[] | null;
    is_error: boolean;
  }
>;

/** Closes a tool call without an observation: invalid arguments, a failed tool, an interrupted run. */
export type AgentErrorEvent = Written<'AgentErrorEvent', ByAgent>;

export type UserRejectObservation = Written<
  'UserRejectObservation',
  ByEnvironment & { rejection_reason: string; rejection_source: 'user' | 'hook' }
>;

/** The `key` is `full_state`, `execution_status`, `stats` or `goal`; the service adds those with `EgressDenied`. */
export type ConversationStateUpdateEvent = Written<
  'ConversationStateUpdateEvent',
  ByEnvironment & { key: string; value: unknown }
>;

export type SystemPromptEvent = Written<'SystemPromptEvent', ByAgent & { tools: ToolDefinition[] }>;

/** The model sees the summary in place of the forgotten events from here on. */
export type Condensation = Written<'Condensation', ByEnvironment & { forgotten_event_ids: string[] }>;

export type AgentEvent =
  | MessageEvent
  | ActionEvent
  | ObservationEvent
  | AgentErrorEvent
  | UserRejectObservation
  | ACPToolCallEvent
  | ConversationStateUpdateEvent
  | Written<'PauseEvent', { source: 'user' }>
  | Written<'ConversationErrorEvent'>
  | SystemPromptEvent
  | Condensation;

export interface EventPage {
  items: AgentEvent[];
  next_page_id: string | null;
}

const NOT_ASCII = /[^ -~]/;
/** A title needs no more of a line. */
const MAX_LINE = 10_000;

/** The first line of the user's first message, cut between words; null before there is one. */
export function conversationTitle(events: readonly AgentEvent[], maxLength: number): string | null {
  for (const event of events) {
    if (isUserMessage(event)) {
      const line = contentText(event.llm_message.content)
        .split('\n')
        .map((words) =>
          words
            .slice(0, MAX_LINE)
            .replace(/^[#>*\s-]+/, '')
            .replace(/\s+/g, ' ')
            .trim(),
        )
        .find((words) => words !== '');
      if (line !== undefined) {
        return shorten(line, maxLength);
      }
    }
  }
  return null;
}

/** Whether it is a message to work on: from a person, or from the agent of another conversation. */
export function isUserMessage(event: AgentEvent): event is MessageEvent {
  return event.kind === 'MessageEvent' && (event.source === 'user' || isOfAnotherAgent(event));
}

export function isOfAnotherAgent(event: object): boolean {
  return jsonText(event, 'sender_conversation_id') !== null;
}

/** Joins the texts with line breaks and leaves out images. */
export function contentText(content: readonly Content[]): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
}

function shorten(line: string, maxLength: number): string {
  if (line.length <= maxLength) {
    return line;
  }
  const letters = lettersOf(line);
  if (letters.length <= maxLength) {
    return line;
  }
  const cut = letters.slice(0, Math.max(maxLength - 1, 1)).join('');
  const space = cut.lastIndexOf(' ');
  return `${space > cut.length / 2 ? cut.slice(0, space) : cut}…`;
}

/** Loading the tables for graphemes beyond ASCII costs 20 ms. */
function lettersOf(line: string): string[] {
  return NOT_ASCII.test(line)
    ? Array.from(new Intl.Segmenter().segment(line), ({ segment }) => segment)
    : line.split('');
}
