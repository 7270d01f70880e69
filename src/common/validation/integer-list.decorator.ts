import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';
import { coerceInteger, integerProblems } from './integer.decorator.js';
import { boundsSchema, type NumberBounds } from './number-bounds.js';
import { TooMany, unlessTooMany } from './too-many.js';

/** A list of whole numbers; the bounds are each element's. */
export function IntegerList(options: FieldOptions & NumberBounds): PropertyDecorator {
  return composeDecorators(
    documentedField(
      options,
      { type: 'array', items: { type: 'integer', ...boundsSchema(options) } },
      (value) => (Array.isArray(value) ? unlessTooMany(value.length, () => value.map(coerceInteger)) : value),
    ),
    fieldRule('integerList', options, (value) => {
      if (value instanceof TooMany) {
        return [value.problem];
      }
      return Array.isArray(value)
        ? value.flatMap((element, index) =>
            integerProblems(element, options).map((problem) => ({ ...problem, path: [String(index)] })),
          )
        : [{ type: 'list_type', msg: 'Expected a list of whole numbers.' }];
    }),
  );
}
