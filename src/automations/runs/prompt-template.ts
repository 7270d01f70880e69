import { errorMessage } from '@slipway/common/errors/error-message.js';
import { fenced, newMark, renderedText } from '@slipway/common/untrusted-text/fenced-text.js';
import { evaluate, expressionProblem, type Spend, stepBudget } from '@slipway/common/jmespath.js';

const PLACEHOLDER = /\{\{\s*event(?:\.([^{}]{1,1000})|\s*)\}\}/g;
const BEGUN = /\{\{\s*event\b/;
const MAX_VALUE = 8_000;
/** Bounds placeholders, so that their values fit into one start. */
const MAX_PLACEHOLDERS = 8;

/** Why a prompt cannot be used; null for a good one. */
export function promptProblem(prompt: string): string | null {
  const expressions = Array.from(prompt.matchAll(PLACEHOLDER), ([, expression = '@']) => expression);
  if (BEGUN.test(prompt.replaceAll(PLACEHOLDER, ''))) {
    return 'Expected placeholders such as {{ event.issue.title }}.';
  }
  return expressions.length > MAX_PLACEHOLDERS
    ? `Expected at most ${MAX_PLACEHOLDERS} placeholders.`
    : (expressions.map(expressionProblem).find((problem) => problem !== null) ?? null);
}

/**
 * Puts values of the event between lines with a random mark, which the event's author could not know. What the values
 * hold is not looked at for placeholders.
 */
export function filledPrompt(prompt: string, event: unknown, mark = newMark()): string {
  const spend = stepBudget();
  return prompt.replaceAll(PLACEHOLDER, (_whole, expression: string = '@') =>
    fenced('event', mark, valueText(expression, event, spend), MAX_VALUE),
  );
}

function valueText(expression: string, event: unknown, spend: Spend): string {
  try {
    return renderedText(evaluate(expression, event, spend) ?? '');
  } catch (error) {
    return `(not available: ${errorMessage(error)})`;
  }
}
