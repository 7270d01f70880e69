import type { ValidationError } from 'class-validator';
import type { InputProblem } from '../errors/invalid-input.error.js';
import type { FieldRuleContext } from './field-rule.js';

/**
 * Flattens class-validator's error tree into problems with full locations, in field order.
 * Errors without one of our rules behind them (class-validator's own remarks on elements that a rule of ours
 * already names) are left out.
 */
export function inputProblems(errors: readonly ValidationError[], loc: readonly string[]): InputProblem[] {
  return errors.flatMap((error) => {
    const here = [...loc, error.property];
    const own = Object.values((error.contexts ?? {}) as Record<string, FieldRuleContext>)
      .flatMap((context) => context.describe(error.value))
      .map(({ type, msg, path }) => ({ loc: [...here, ...(path ?? [])], msg, type }));
    const below = inputProblems(error.children ?? [], here);
    // A map's keys are judged before its values; members that should not be there come after those that may.
    const all = error.value instanceof Map ? [...own, ...below] : [...below, ...own];
    return inElementOrder(all, here.length, error.value);
  });
}

/** Problems of a list's or map's elements follow the order of the elements; everything else stays as it is. */
function inElementOrder(problems: InputProblem[], depth: number, value: unknown): InputProblem[] {
  if (!Array.isArray(value) && !(value instanceof Map)) {
    return problems;
  }
  const ranks = new Map([...value.keys()].map((key, index) => [String(key), index]));
  const rank = (problem: InputProblem): number => ranks.get(problem.loc[depth] ?? '') ?? -1;
  return problems.toSorted((a, b) => rank(a) - rank(b));
}
