import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule, type FieldProblem } from './field-rule.js';
import { boundsProblems, boundsSchema, type NumberBounds } from './number-bounds.js';

const DECIMAL = /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** A finite number, or one as text (`"1.5"`). */
export function Decimal(options: FieldOptions & NumberBounds): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: 'number', ...boundsSchema(options) }, (value) =>
      typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value,
    ),
    fieldRule('decimal', options, (value) => decimalProblems(value, options)),
  );
}

function decimalProblems(value: unknown, bounds: NumberBounds): FieldProblem[] {
  if (typeof value === 'string') {
    return [{ type: 'float_parsing', msg: 'Expected a number; this text is not one.' }];
  }
  if (typeof value !== 'number') {
    return [{ type: 'float_type', msg: 'Expected a number.' }];
  }
  if (!Number.isFinite(value)) {
    return [{ type: 'finite_number', msg: 'Expected a finite number.' }];
  }
  return boundsProblems(value, bounds);
}
