import { jsonList, jsonText } from '@slipway/common/json-access.js';

/** Lines of output or of a file that are shown of one event. */
const MAX_LINES = 40;
/** These repeat what the action has said. */
const SPOKEN = new Set(['FinishObservation', 'ThinkObservation']);

/** Made of the texts at paths of an event; a list there counts as the texts in it. */
type Lines = (text: (...path: string[]) => string) => string[];

const ACTIONS = new Map(
  Object.entries<Lines>({
    TerminalAction: (text) => [`$ ${text('action', 'command')}`],
    FileEditorAction: (text) => [
      `• ${text('action', 'command') || 'edit'} ${text('action', 'path')}`,
      ...marked('-', text('action', 'old_str')),
      ...marked('+', text('action', 'new_str') || text('action', 'file_text')),
    ],
    FinishAction: (text) => titled('agent', text('action', 'message')),
    ThinkAction: (text) => titled('thinks', text('action', 'thought')),
  }),
);

const EVENTS = new Map(
  Object.entries<Lines>({
    MessageEvent: (text) =>
      titled(text('source') === 'user' ? 'you' : 'agent', text('llm_message', 'content')),
    ActionEvent: (text) => [
      ...titled('agent', text('thought')),
      ...(ACTIONS.get(text('action', 'kind'))?.(text) ?? [
        `• ${text('tool_name') || 'tool'} ${text('tool_call', 'arguments')}`,
      ]),
    ],
    ObservationEvent: (text) =>
      SPOKEN.has(text('observation', 'kind')) ? [] : marked(' ', text('observation', 'content').trimEnd()),
    ACPToolCallEvent: (text) => [`• ${text('title') || 'tool'} (${text('status') || 'pending'})`],
    AgentErrorEvent: (text) => titled('error', text('error')),
    ConversationErrorEvent: (text) => titled('error', text('detail') || text('code')),
    UserRejectObservation: (text) => titled('rejected', text('rejection_reason')),
    ConversationStateUpdateEvent: (text) =>
      text('key') === 'execution_status' ? [`— ${text('value')}`] : [],
  }),
);

/** What a person wants to read of an event; nothing for events that say nothing new. */
export function eventLines(event: unknown): string[] {
  const text = (...path: string[]): string => {
    const parts = jsonList(event, ...path).map((part) => jsonText(part, 'text') ?? '');
    return jsonText(event, ...path) ?? parts.join('\n');
  };
  const lines = EVENTS.get(text('kind'))?.(text) ?? [];
  // Users and models choose texts that a terminal shows here.
  return lines.map((line) => line.replaceAll(/[^\P{Cc}\n\t]/gu, '\u{fffd}'));
}

/** The status that an event tells of; null for other events. */
export function executionStatus(event: unknown): string | null {
  return jsonText(event, 'key') === 'execution_status' ? jsonText(event, 'value') : null;
}

function titled(who: string, text: string): string[] {
  return text.trim() === '' ? [] : [`${who}: ${text.trim()}`];
}

function marked(mark: string, text: string): string[] {
  const lines = text === '' ? [] : text.split('\n');
  const shown = lines.slice(0, MAX_LINES).map((line) => `  ${mark} ${line}`);
  return lines.length > MAX_LINES ? [...shown, `    … ${lines.length - MAX_LINES} more lines`] : shown;
}
