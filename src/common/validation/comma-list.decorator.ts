import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';

export interface CommaListOptions extends FieldOptions {
  values: readonly string[];
}

/** A query parameter that holds a comma list of known words; arrives as an array. */
export function CommaList(options: CommaListOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String }, (value) =>
      typeof value === 'string' ? value.split(',').map((word) => word.trim()) : value,
    ),
    fieldRule('commaList', options, (value) => {
      if (!Array.isArray(value)) {
        return [{ type: 'string_type', msg: 'Expected one comma-separated list.' }];
      }
      return value.every((word) => options.values.includes(String(word)))
        ? []
        : [{ type: 'enum', msg: `Expected a comma list of: ${options.values.join(', ')}.` }];
    }),
  );
}
