import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';

export interface ChoiceOptions extends FieldOptions {
  values: readonly string[];
  /** Name of the schema in OpenAPI, where other members have the same values. */
  enumName?: string;
}

/** One of some known words. */
export function Choice(options: ChoiceOptions): PropertyDecorator {
  const { values, enumName } = options;
  return composeDecorators(
    documentedField(options, {
      enum: [...values],
      ...(enumName === undefined ? { type: String } : { enumName }),
    }),
    fieldRule('choice', options, (value) =>
      typeof value === 'string' && values.includes(value)
        ? []
        : [{ type: 'enum', msg: `Expected one of: ${values.join(', ')}.` }],
    ),
  );
}
