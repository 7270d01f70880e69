import type { AgentEvent } from '../../../agent-protocol/events.js';
import { estimateTokens } from './token-estimate.js';
import { isResult, type VisibleEvent, visibleEvents } from './visible-events.js';

export interface Forgettable {
  /** What the summary is made of, oldest first; an earlier summary among it. */
  events: VisibleEvent[];
  /** Where the summary stands among what remains. */
  offset: number;
}

/** Fewer would hardly make room for their summary. */
const MIN_EVENTS = 3;

/**
 * The oldest part of the history that can be left out: not the system prompt, not the user's first message, not the
 * newest events up to a size, and no call without its result.
 *
 * @param keepTokens size of the newest part, roughly
 * @returns null when there is nothing worth leaving out
 */
export function forgettable(events: readonly AgentEvent[], keepTokens: number): Forgettable | null {
  const view = visibleEvents(events);
  const start =
    1 +
    Math.max(
      view.findIndex(({ kind, source }) => kind === 'MessageEvent' && source === 'user'),
      view.findLastIndex(({ kind }) => kind === 'SystemPromptEvent'),
    );
  const end = cutAt(view, start, keepTokens);
  return end - start < MIN_EVENTS ? null : { events: view.slice(start, end), offset: start };
}

/** Latest place from which the rest is not larger than asked and no answer is torn from its results. */
function cutAt(view: readonly VisibleEvent[], start: number, keepTokens: number): number {
  let size = 0;
  let cut = view.length;
  for (let index = view.length - 1; index >= start; index -= 1) {
    size += estimateTokens(view[index]);
    if (size > keepTokens && cut < view.length) {
      return cut;
    }
    if (canCut(view, index)) {
      cut = index;
    }
  }
  return cut === view.length ? start : Math.max(cut, start);
}

/** An answer must be whole on one side, with all its results. */
function canCut(view: readonly VisibleEvent[], index: number): boolean {
  const before = view.slice(0, index);
  const after = view.slice(index);
  const answers = new Set(
    before.flatMap((event) => (event.kind === 'ActionEvent' ? [event.llm_response_id] : [])),
  );
  const calls = new Set(
    before.flatMap((event) => (event.kind === 'ActionEvent' ? [event.tool_call_id] : [])),
  );
  return !after.some(
    (event) =>
      (event.kind === 'ActionEvent' && answers.has(event.llm_response_id)) ||
      (isResult(event) && calls.has(event.tool_call_id)),
  );
}
