import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule, type FieldProblem } from './field-rule.js';

const COERCED = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  [1, true],
  [0, false],
]);

/** A boolean, also as `"true"`, `"false"`, 1 or 0. */
export function Flag(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: Boolean }, (value) => COERCED.get(value) ?? value),
    fieldRule('flag', options, flagProblems),
  );
}

function flagProblems(value: unknown): FieldProblem[] {
  if (typeof value === 'boolean') {
    return [];
  }
  return typeof value === 'string' || typeof value === 'number'
    ? [{ type: 'bool_parsing', msg: 'Expected true or false.' }]
    : [{ type: 'bool_type', msg: 'Expected true or false.' }];
}
