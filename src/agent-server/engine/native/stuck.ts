import type { ActionEvent, AgentEvent } from '../../../agent-protocol/events.js';
import { resultText } from './result-text.js';
import { isResult, type ResultEvent } from './visible-events.js';

const REPEATS = 4;

/** Whether the agent did the same four times in a row, with the same result, since the user last wrote. */
export function isStuck(events: readonly AgentEvent[]): boolean {
  const lastUser = events.findLastIndex(({ kind, source }) => kind === 'MessageEvent' && source === 'user');
  const recent = events.slice(lastUser + 1);
  const done = recent.filter((event) => event.kind === 'ActionEvent').slice(-REPEATS);
  const results = recent.filter((event) => isResult(event));
  const turns = done.map((action) => {
    const result = results.find((event) => event.tool_call_id === action.tool_call_id);
    return result === undefined ? null : turnOf(action, result);
  });
  return turns.length === REPEATS && turns[0] !== null && turns.every((turn) => turn === turns[0]);
}

function turnOf({ tool_name, action, tool_call }: ActionEvent, result: ResultEvent): string {
  return JSON.stringify([tool_name, action ?? tool_call.arguments, result.kind, resultText(result)]);
}
