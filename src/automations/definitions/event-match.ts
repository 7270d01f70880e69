import { errorMessage } from '@slipway/common/errors/error-message.js';
import { evaluate, isTruthy } from './event-filter.js';
import { type EventTrigger, isCron, patternsOf, type Trigger } from './trigger.js';

export interface IncomingEvent {
  source: string;
  /** Null where the event does not say what it is. */
  key: string | null;
  payload: unknown;
}

/** Why an event does not start what has the trigger; null when it does. */
export function mismatch(trigger: Trigger, event: IncomingEvent): string | null {
  if (isCron(trigger)) {
    return 'It starts at the times of a schedule.';
  }
  const { source, filter, on } = trigger as EventTrigger;
  if (source !== event.source) {
    return `It waits for events of ${source}.`;
  }
  const patterns = patternsOf(trigger as EventTrigger);
  if (event.key !== null && !patterns.some((pattern) => keyMatches(event.key ?? '', pattern))) {
    return `It waits for ${[on].flat().join(', ')}, and the event is ${event.key}.`;
  }
  return filter ? filterMismatch(filter, event.payload) : null;
}

/** `a.*` stands for `a` too, as some events have no action. */
export function keyMatches(key: string, pattern: string): boolean {
  if (pattern === '*' || pattern === key) {
    return true;
  }
  const beginning = pattern.endsWith('.*') ? pattern.slice(0, -2) : null;
  return beginning !== null && (key === beginning || key.startsWith(`${beginning}.`));
}

function filterMismatch(filter: string, payload: unknown): string | null {
  try {
    return isTruthy(evaluate(filter, payload)) ? null : 'Its filter is false for the event.';
  } catch (error) {
    return `Its filter failed: ${errorMessage(error)}.`;
  }
}
