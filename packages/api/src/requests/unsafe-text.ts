import type { InputProblem } from '../errors/problem-error.js';

/** Enough to see what is wrong. */
const MAX_PROBLEMS = 10;

/** Finds text that PostgreSQL cannot hold (NUL, lone surrogates) in JSON of bounded depth, names included. */
export function unsafeTextProblems(given: unknown, origin = 'body'): InputProblem[] {
  return below(origin, search(given));
}

/** Builds the path on the way back: most values have no problem. */
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
