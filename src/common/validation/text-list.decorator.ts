import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';
import { textProblems } from './text.decorator.js';

/** A list of strings. */
export function TextList(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: [String] }),
    fieldRule('textList', options, (value) =>
      Array.isArray(value)
        ? value.flatMap((element, index) =>
            textProblems(element).map((problem) => ({ ...problem, path: [String(index)] })),
          )
        : [{ type: 'list_type', msg: 'Expected a list of strings.' }],
    ),
  );
}
