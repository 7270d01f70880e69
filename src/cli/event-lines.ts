import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';

/** Lines of output or of a file that are shown of one event. */
const MAX_LINES = 40;

/** What a person wants to read of an event; nothing for events that say nothing new. */
export function eventLines(event: unknown): string[] {
  switch (jsonText(event, 'kind')) {
    case 'MessageEvent':
      return titled(
        jsonText(event, 'source') === 'user' ? 'you' : 'agent',
        contentText(event, 'llm_message', 'content'),
      );
    case 'ActionEvent':
      return [...titled('agent', contentText(event, 'thought')), ...actionLines(event)];
    case 'ObservationEvent':
      return isSpoken(jsonText(event, 'observation', 'kind'))
        ? []
        : indented(contentText(event, 'observation', 'content'));
    case 'ACPToolCallEvent':
      return [`• ${jsonText(event, 'title') ?? 'tool'} (${jsonText(event, 'status') ?? 'pending'})`];
    case 'AgentErrorEvent':
      return titled('error', jsonText(event, 'error') ?? '');
    case 'ConversationErrorEvent':
      return titled('error', jsonText(event, 'detail') ?? jsonText(event, 'code') ?? '');
    case 'UserRejectObservation':
      return titled('rejected', jsonText(event, 'rejection_reason') ?? '');
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

/** These repeat what the action has said. */
function isSpoken(kind: string | null): boolean {
  return kind === 'FinishObservation' || kind === 'ThinkObservation';
}

function actionLines(event: unknown): string[] {
  const action = jsonAt(event, 'action');
  const path = jsonText(action, 'path');
  switch (jsonText(action, 'kind')) {
    case 'TerminalAction':
      return [`$ ${jsonText(action, 'command') ?? ''}`];
    case 'FileEditorAction':
      return [
        `• ${jsonText(action, 'command') ?? 'edit'} ${path ?? ''}`,
        ...marked('-', jsonText(action, 'old_str')),
        ...marked('+', jsonText(action, 'new_str') ?? jsonText(action, 'file_text')),
      ];
    case 'FinishAction':
      return titled('agent', jsonText(action, 'message') ?? '');
    case 'ThinkAction':
      return titled('thinks', jsonText(action, 'thought') ?? '');
    default:
      return [
        `• ${jsonText(event, 'tool_name') ?? 'tool'} ${jsonText(event, 'tool_call', 'arguments') ?? ''}`,
      ];
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

function indented(text: string): string[] {
  return marked(' ', text.trim() === '' ? null : text.trimEnd());
}

function marked(mark: string, text: string | null): string[] {
  const lines = text === null ? [] : text.split('\n');
  const shown = lines.slice(0, MAX_LINES).map((line) => `  ${mark} ${line}`);
  return lines.length > MAX_LINES ? [...shown, `    … ${lines.length - MAX_LINES} more lines`] : shown;
}
