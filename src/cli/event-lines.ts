import { jsonList, jsonText } from '@slipway/common/json-access.js';

/** Lines of output or of a file that are shown of one event. */
const MAX_LINES = 40;
/** These repeat what the action has said. */
const SPOKEN = new Set(['FinishObservation', 'ThinkObservation']);

/** What a person wants to read of an event; nothing for events that say nothing new. */
export function eventLines(event: unknown): string[] {
  const text = (...path: string[]): string => jsonText(event, ...path) ?? '';
  switch (text('kind')) {
    case 'MessageEvent':
      return titled(
        text('source') === 'user' ? 'you' : 'agent',
        contentText(event, 'llm_message', 'content'),
      );
    case 'ActionEvent':
      return [...titled('agent', contentText(event, 'thought')), ...actionLines(text)];
    case 'ObservationEvent':
      return SPOKEN.has(text('observation', 'kind'))
        ? []
        : marked(' ', contentText(event, 'observation', 'content').trimEnd());
    case 'ACPToolCallEvent':
      return [`• ${text('title') || 'tool'} (${text('status') || 'pending'})`];
    case 'AgentErrorEvent':
      return titled('error', text('error'));
    case 'ConversationErrorEvent':
      return titled('error', text('detail') || text('code'));
    case 'UserRejectObservation':
      return titled('rejected', text('rejection_reason'));
    case 'ConversationStateUpdateEvent':
      return executionStatus(event) === null ? [] : [`— ${executionStatus(event)}`];
    default:
      return [];
  }
}

/** The status that an event tells of; null for other events. */
export function executionStatus(event: unknown): string | null {
  return jsonText(event, 'kind') === 'ConversationStateUpdateEvent' &&
    jsonText(event, 'key') === 'execution_status'
    ? jsonText(event, 'value')
    : null;
}

function actionLines(text: (...path: string[]) => string): string[] {
  switch (text('action', 'kind')) {
    case 'TerminalAction':
      return [`$ ${text('action', 'command')}`];
    case 'FileEditorAction':
      return [
        `• ${text('action', 'command') || 'edit'} ${text('action', 'path')}`,
        ...marked('-', text('action', 'old_str')),
        ...marked('+', text('action', 'new_str') || text('action', 'file_text')),
      ];
    case 'FinishAction':
      return titled('agent', text('action', 'message'));
    case 'ThinkAction':
      return titled('thinks', text('action', 'thought'));
    default:
      return [`• ${text('tool_name') || 'tool'} ${text('tool_call', 'arguments')}`];
  }
}

function contentText(value: unknown, ...path: string[]): string {
  return jsonList(value, ...path)
    .map((part) => jsonText(part, 'text') ?? '')
    .join('\n');
}

function titled(who: string, text: string): string[] {
  return text.trim() === '' ? [] : [`${who}: ${text.trim()}`];
}

function marked(mark: string, text: string): string[] {
  const lines = text === '' ? [] : text.split('\n');
  const shown = lines.slice(0, MAX_LINES).map((line) => `  ${mark} ${line}`);
  return lines.length > MAX_LINES ? [...shown, `    … ${lines.length - MAX_LINES} more lines`] : shown;
}
