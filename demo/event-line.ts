import { jsonAt, jsonList, jsonText } from '../src/common/json-access.js';
import type { ServerSentEvent } from './server-sent-events.js';

const WIDTH = 110;

/** One line about an event, or null for those that say nothing new. */
export function eventLine({ event, data }: ServerSentEvent): string | null {
  switch (event) {
    case 'MessageEvent':
      return line(jsonText(data, 'source') ?? '', textOf(jsonList(data, 'llm_message', 'content')));
    case 'ActionEvent': {
      const action = jsonAt(data, 'action');
      const said = textOf(jsonList(data, 'thought'));
      const what = jsonText(action, 'command') ?? jsonText(action, 'message') ?? '';
      return line(jsonText(data, 'tool_name') ?? '', said === '' ? what : `${said} ${what}`);
    }
    case 'ObservationEvent':
      return line('', textOf(jsonList(data, 'observation', 'content')));
    case 'ConversationErrorEvent':
      return line('error', jsonText(data, 'detail') ?? '');
    case 'ConversationStateUpdateEvent':
      return jsonText(data, 'key') === 'execution_status'
        ? line('status', jsonText(data, 'value') ?? '')
        : null;
    default:
      return null;
  }
}

/** The agent has come to rest. */
export function isAtRest({ event, data }: ServerSentEvent): boolean {
  return (
    event === 'ConversationStateUpdateEvent' &&
    jsonText(data, 'key') === 'execution_status' &&
    ['finished', 'error', 'stuck'].includes(jsonText(data, 'value') ?? '')
  );
}

function textOf(content: unknown[]): string {
  return content.map((part) => jsonText(part, 'text') ?? '').join(' ');
}

function line(who: string, text: string): string {
  const oneLine = text.replaceAll(/\s+/g, ' ').trim();
  return `${who.padEnd(9)} ${oneLine.length > WIDTH ? `${oneLine.slice(0, WIDTH)}…` : oneLine}`.trimEnd();
}
