import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';
import { textProblems } from './text.decorator.js';
import { TooMany, unlessTooMany } from './too-many.js';

/** A list of strings. */
export function TextList(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: [String] }, (value) =>
      Array.isArray(value) ? unlessTooMany(value.length, () => value) : value,
    ),
    fieldRule('textList', options, (value) => {
      if (value instanceof TooMany) {
        return [value.problem];
      }
      return Array.isArray(value)
        ? value.flatMap((element, index) =>
            textProblems(element).map((problem) => ({ ...problem, path: [String(index)] })),
          )
        : [{ type: 'list_type', msg: 'Expected a list of strings.' }];
    }),
  );
}
