import { errorMessage } from '@slipway/common/errors/error-message.js';
import { evaluate, isTruthy } from './event-filter.js';
import type { Trigger } from './trigger.dto.js';

export interface IncomingEvent {
  source: string;
  /** Null where the event does not say what it is. */
  key: string | null;
  payload: unknown;
}

/** Why an event does not start what has the trigger; null when it does. */
export function mismatch(trigger: Trigger, { source, key, payload }: IncomingEvent): string | null {
  if (trigger.type === 'cron') {
    return 'It starts at the times of a schedule.';
  }
  if (trigger.source !== source) {
    return `It waits for events of ${trigger.source}.`;
  }
  const patterns = [trigger.on].flat();
  if (key !== null && !patterns.some((pattern) => keyMatches(key, pattern))) {
    return `It waits for ${patterns.join(', ')}, and the event is ${key}.`;
  }
  try {
    const isMatch = !trigger.filter || isTruthy(evaluate(trigger.filter, payload));
    return isMatch ? null : 'Its filter is false for the event.';
  } catch (error) {
    return `Its filter failed: ${errorMessage(error)}.`;
  }
}

/** `a.*` stands for `a` too, as some events have no action. */
export function keyMatches(key: string, pattern: string): boolean {
  const beginning = pattern.endsWith('.*') ? pattern.slice(0, -1) : null;
  return pattern === '*' || pattern === key || (beginning !== null && `${key}.`.startsWith(beginning));
}
