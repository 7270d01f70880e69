import { errorMessage } from '@slipway/common/errors/error-message.js';
import { fenced, newMark } from '../../common/fenced-text.js';
import { evaluate, filterProblem } from '../definitions/event-filter.js';

const PLACEHOLDER = /\{\{\s*event(?:\.([^{}]{1,1000}?))?\s*\}\}/g;
const MAX_VALUE = 8_000;
/** Their values fit what one start may hold. */
const MAX_PLACEHOLDERS = 8;

/** Why a prompt cannot be used; null for a good one. */
export function promptProblem(prompt: string): string | null {
  const expressions = Array.from(prompt.matchAll(PLACEHOLDER), ([, expression = '@']) => expression);
  return expressions.length > MAX_PLACEHOLDERS
    ? `Expected at most ${MAX_PLACEHOLDERS} placeholders.`
    : (expressions.map(filterProblem).find((problem) => problem !== null) ?? null);
}

/**
 * Puts values of the event between lines with a random mark, which the event's author could not know. What the values
 * hold is not looked at for placeholders.
 */
export function filledPrompt(prompt: string, event: unknown, mark = newMark()): string {
  return prompt.replaceAll(PLACEHOLDER, (_whole, expression: string = '@') => {
    return fenced('event', mark, valueText(expression, event), MAX_VALUE);
  });
}

function valueText(expression: string, event: unknown): string {
  try {
    const value = evaluate(expression, event) ?? '';
    return typeof value === 'string' ? value : JSON.stringify(value);
  } catch (error) {
    return `(not available: ${errorMessage(error)})`;
  }
}
