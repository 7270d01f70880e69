import { isUserMessage, type ActionEvent, type AgentEvent } from '@slipway/agent-protocol/events.js';
import { isResult, type ResultEvent } from '../agent-events.js';
import { resultText } from './messages-from-events.js';

/** Rounds of quick calls that make a loop. */
const ROUNDS = 4;
/** Rounds where a call took long: an agent that polls something waits, and does not loop. */
const SLOW_ROUNDS = 10;
const SLOW_MS = 1_000;
const MAX_PERIOD = 3;

interface Turn {
  fingerprint: string;
  isSlow: boolean;
}

/** Calls in the round that the agent repeats with the same results since the user's last message, or null. */
export function repeatedCalls(events: readonly AgentEvent[]): number | null {
  const turns = lastTurns(events);
  for (let period = 1; period <= MAX_PERIOD; period += 1) {
    if (repeats(turns.slice(-period * ROUNDS), period, ROUNDS, ({ isSlow }) => !isSlow)) {
      return period;
    }
    if (repeats(turns.slice(-period * SLOW_ROUNDS), period, SLOW_ROUNDS, () => true)) {
      return period;
    }
  }
  return null;
}

function repeats(
  turns: readonly Turn[],
  period: number,
  rounds: number,
  counts: (turn: Turn) => boolean,
): boolean {
  return (
    turns.length === period * rounds &&
    turns.every((turn, index) => counts(turn) && turn.fingerprint === turns[index % period]?.fingerprint)
  );
}

/** The latest calls that have results; empty while one is open. */
function lastTurns(events: readonly AgentEvent[]): Turn[] {
  const lastUser = events.findLastIndex(isUserMessage);
  const recent = events
    .slice(lastUser + 1)
    .filter((event) => event.kind === 'ActionEvent' || isResult(event))
    // Twice: calls and results.
    .slice(-2 * MAX_PERIOD * SLOW_ROUNDS);
  const results = new Map<string, { result: ResultEvent; isSlow: boolean }>();
  for (const [index, event] of recent.entries()) {
    if (event.kind !== 'ActionEvent') {
      // The calls of a response run one after the other, so each begins when the event before its result was written.
      const begun = (recent[index - 1] ?? event).timestamp;
      const isSlow = Date.parse(event.timestamp) - Date.parse(begun) >= SLOW_MS;
      results.set(event.tool_call_id, { result: event, isSlow });
    }
  }
  const turns = recent
    .filter((event) => event.kind === 'ActionEvent')
    .map((action) => {
      const found = results.get(action.tool_call_id);
      return found && { fingerprint: fingerprint(action, found.result), isSlow: found.isSlow };
    });
  return turns.slice(turns.lastIndexOf(undefined) + 1).filter((turn) => turn !== undefined);
}

function fingerprint({ tool_name, action, tool_call }: ActionEvent, result: ResultEvent): string {
  return JSON.stringify([tool_name, action ?? tool_call.arguments, result.kind, resultText(result)]);
}
