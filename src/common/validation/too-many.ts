import type { FieldProblem } from './field-rule.js';

/** More elements than this serve no request of ours, and each one costs time and perhaps a line in the answer. */
const MOST_ELEMENTS = 1_000;

/** Stands in for a list or map with too many elements, so that nothing walks through them. */
export class TooMany {
  readonly problem: FieldProblem = {
    type: 'too_long',
    msg: `Expected at most ${MOST_ELEMENTS} elements.`,
  };
}

/** What `convert` makes of `count` elements, or the stand-in when there are too many of them. */
export function unlessTooMany<T>(count: number, convert: () => T): T | TooMany {
  return count > MOST_ELEMENTS ? new TooMany() : convert();
}
