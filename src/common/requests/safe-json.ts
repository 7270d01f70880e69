import type { InputProblem } from '../errors/invalid-input.error.js';

/** Deeper JSON than this serves no request of ours and costs stack in whatever walks it. */
const DEEPEST = 64;

/**
 * Looks through parsed JSON, without recursion, for what PostgreSQL text cannot hold (NUL, lone surrogates) and
 * for nesting that no request needs.
 *
 * @param place where the value came in: `body`, `query` or `path`
 * @returns the problems found, at most ten
 */
export function unsafeJsonProblems(given: unknown, place = 'body'): InputProblem[] {
  const problems: InputProblem[] = [];
  const pending: { value: unknown; loc: string[] }[] = [{ value: given, loc: [place] }];
  for (let next = pending.pop(); next && problems.length < 10; next = pending.pop()) {
    const { value, loc } = next;
    if (typeof value === 'string') {
      problems.push(...textProblems(value, loc));
    } else if (typeof value === 'object' && value !== null) {
      if (loc.length > DEEPEST) {
        return [
          { loc: ['body'], msg: `Expected at most ${DEEPEST} levels of nesting.`, type: 'json_invalid' },
        ];
      }
      const entries = Object.entries(value);
      for (let index = entries.length - 1; index >= 0; index -= 1) {
        const [key, child] = entries[index] ?? ['', undefined];
        problems.push(...textProblems(key, loc));
        if (typeof child === 'string' || typeof child === 'object') {
          pending.push({ value: child, loc: [...loc, key] });
        }
      }
    }
  }
  return problems;
}

function textProblems(text: string, loc: string[]): InputProblem[] {
  if (text.includes('\0')) {
    return [{ loc, msg: 'Expected text without NUL characters.', type: 'string_unicode' }];
  }
  return text.isWellFormed()
    ? []
    : [{ loc, msg: 'Expected well-formed Unicode text (a surrogate stands alone).', type: 'string_unicode' }];
}
