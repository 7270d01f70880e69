import type { FieldProblem } from './field-rule.js';

export interface NumberBounds {
  minimum?: number;
  maximum?: number;
}

/** The problem of a number outside its bounds, if any. */
export function boundsProblems(value: number, bounds: NumberBounds): FieldProblem[] {
  if (bounds.minimum !== undefined && value < bounds.minimum) {
    return [{ type: 'greater_than_equal', msg: `Expected a number of at least ${bounds.minimum}.` }];
  }
  if (bounds.maximum !== undefined && value > bounds.maximum) {
    return [{ type: 'less_than_equal', msg: `Expected a number of at most ${bounds.maximum}.` }];
  }
  return [];
}

/** The bounds as OpenAPI writes them. */
export function boundsSchema({ minimum, maximum }: NumberBounds): NumberBounds {
  return { ...(minimum !== undefined && { minimum }), ...(maximum !== undefined && { maximum }) };
}
