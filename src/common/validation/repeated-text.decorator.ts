import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';

export interface RepeatedTextOptions extends FieldOptions {
  /** How often it may be repeated. */
  most: number;
}

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array of strings. */
export function RepeatedText(options: RepeatedTextOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: [String], maxItems: options.most }, (value) =>
      typeof value === 'string' ? [value] : value,
    ),
    fieldRule('repeatedText', options, (value) => {
      if (!Array.isArray(value) || !value.every((element) => typeof element === 'string')) {
        return [{ type: 'list_type', msg: 'Expected the parameter once for each value.' }];
      }
      return value.length > options.most
        ? [{ type: 'too_long', msg: `Expected at most ${options.most} values.` }]
        : [];
    }),
  );
}
