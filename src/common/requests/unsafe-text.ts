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
  const search = new UnsafeTextSearch(origin);
  search.value(given);
  return search.problems;
}

/** One walk through a value. The way to the present value is kept once: a copy for each value would cost a hundred times as much. */
class UnsafeTextSearch {
  readonly problems: InputProblem[] = [];
  readonly #way: string[];

  constructor(origin: string) {
    this.#way = [origin];
  }

  value(value: unknown): void {
    if (typeof value === 'string') {
      this.#text(value);
    } else if (Array.isArray(value)) {
      // Not `entries`: text is all that matters, and most lists of numbers are long.
      for (let index = 0; index < value.length && this.#goesOn; index += 1) {
        this.#member(String(index), value[index]);
      }
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, member] of Object.entries(value)) {
        if (!this.#goesOn) {
          return;
        }
        this.#text(key);
        this.#member(key, member);
      }
    }
  }

  get #goesOn(): boolean {
    return this.problems.length < MAX_PROBLEMS;
  }

  #member(name: string, value: unknown): void {
    if (typeof value === 'string' || typeof value === 'object') {
      this.#way.push(name);
      this.value(value);
      this.#way.pop();
    }
  }

  #text(text: string): void {
    const msg = problemOf(text);
    if (msg !== null && this.#goesOn) {
      this.problems.push({ loc: [...this.#way], msg, type: 'string_unicode' });
    }
  }
}

function problemOf(text: string): string | null {
  if (text.includes('\0')) {
    return 'Expected text without NUL characters.';
  }
  return text.isWellFormed() ? null : 'Expected well-formed Unicode text (a surrogate stands alone).';
}
