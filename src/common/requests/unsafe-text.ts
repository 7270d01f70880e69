import type { InputProblem } from '../errors/domain-error.js';

/** Enough to see what is wrong. */
const MAX_PROBLEMS = 10;

/**
 * Searches input for text that PostgreSQL cannot hold (NUL, lone surrogates), in member names too.
 *
 * @param given parsed JSON of bounded depth
 * @param origin where the value comes from: `body`, `query` or `path`
 * @returns the problems found, at most ten
 */
export function unsafeTextProblems(given: unknown, origin = 'body'): InputProblem[] {
  return below(origin, search(given));
}

/** The way to a problem is put together on the way back: most values have none. */
function search(value: unknown): InputProblem[] {
  if (typeof value === 'string') {
    const msg = problemOf(value);
    return msg === null ? [] : [{ loc: [], msg, type: 'string_unicode' }];
  }
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  const problems: InputProblem[] = [];
  for (const [key, member] of Object.entries(value)) {
    problems.push(...search(key), ...below(key, search(member)));
    if (problems.length >= MAX_PROBLEMS) {
      break;
    }
  }
  return problems.slice(0, MAX_PROBLEMS);
}

function below(key: string, problems: readonly InputProblem[]): InputProblem[] {
  return problems.map((problem) => ({ ...problem, loc: [key, ...problem.loc] }));
}

function problemOf(text: string): string | null {
  if (text.includes('\0')) {
    return 'Expected text without NUL characters.';
  }
  return text.isWellFormed() ? null : 'Expected well-formed Unicode text (a surrogate stands alone).';
}
