import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule, type FieldProblem } from './field-rule.js';
import { boundsProblems, boundsSchema, type NumberBounds } from './number-bounds.js';

/** PostgreSQL's `integer`: what a column can hold. */
const LARGEST = 2_147_483_647;

/** A whole number, or its decimal digits as text (`"5"`). */
export function Integer(options: FieldOptions & NumberBounds): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: 'integer', ...boundsSchema(options) }, coerceInteger),
    fieldRule('integer', options, (value) => integerProblems(value, options)),
  );
}

/** Decimal digits as the number they stand for; anything else as it is. */
export function coerceInteger(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

/** The problems of a value that should be a whole number. */
export function integerProblems(value: unknown, bounds: NumberBounds): FieldProblem[] {
  if (typeof value === 'string') {
    return /^-?\d+$/.test(value)
      ? [{ type: 'int_parsing_size', msg: `Expected a whole number of at most ${LARGEST}.` }]
      : [{ type: 'int_parsing', msg: 'Expected a whole number; this text is not one.' }];
  }
  if (typeof value !== 'number') {
    return [{ type: 'int_type', msg: 'Expected a whole number.' }];
  }
  if (!Number.isFinite(value) || Math.abs(value) > LARGEST) {
    return [{ type: 'int_parsing_size', msg: `Expected a whole number of at most ${LARGEST}.` }];
  }
  if (!Number.isInteger(value)) {
    return [{ type: 'int_from_float', msg: 'Expected a whole number, without a fraction.' }];
  }
  return boundsProblems(value, bounds);
}
