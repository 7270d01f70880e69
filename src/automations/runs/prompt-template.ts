import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonText } from '@slipway/common/json-access.js';
import { fenced, newMark, renderedText } from '../../common/fenced-text.js';
import { evaluate, expressionProblem, type Spend, stepBudget } from '../../common/jmespath.js';

const PLACEHOLDER = /\{\{\s*event(?:\.([^{}]{1,1000})|\s*)\}\}/g;
const BEGUN = /\{\{\s*event\b/;
const MAX_VALUE = 8_000;
/** Their values fit what one start may hold. */
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

/** Where hosts say what the issue, or the pull or merge request, of an event is called. */
const TITLED = ['issue', 'pull_request', 'merge_request', 'object_attributes', 'pullrequest', 'pullRequest'];
const MAX_TITLE = 200;

/** What a conversation about an event is called; null for an event about something without a title. */
export function eventTitle(event: unknown): string | null {
  const titles = TITLED.map((name) => jsonText(event, name, 'title')?.replaceAll(/\s+/g, ' ').trim());
  const title = titles.find((each) => each) ?? null;
  return title && Array.from(renderedText(title)).slice(0, MAX_TITLE).join('');
}

function valueText(expression: string, event: unknown, spend: Spend): string {
  try {
    return renderedText(evaluate(expression, event, spend) ?? '');
  } catch (error) {
    return `(not available: ${errorMessage(error)})`;
  }
}
