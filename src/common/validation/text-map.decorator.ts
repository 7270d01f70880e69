import { Transform } from 'class-transformer';
import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';
import { isPlainObject } from './plain-object.js';
import { textProblems } from './text.decorator.js';

export interface TextMapOptions extends FieldOptions {
  /** The sentence for a bad key, or null. */
  keyRule: (key: string) => string | null;
}

/** An object whose values are strings; arrives as a `Map`. */
export function TextMap(options: TextMapOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: 'object', additionalProperties: { type: 'string' } }),
    Transform(({ value }: { value: unknown }) =>
      isPlainObject(value) ? new Map<string, unknown>(Object.entries(value)) : value,
    ),
    fieldRule('textMap', options, (value) => {
      if (!(value instanceof Map)) {
        return [{ type: 'dict_type', msg: 'Expected an object whose values are strings.' }];
      }
      return [...(value as Map<string, unknown>)].flatMap(([key, entry]) => {
        const sentence = options.keyRule(key);
        return sentence === null
          ? textProblems(entry).map((problem) => ({ ...problem, path: [key] }))
          : [{ type: 'value_error', msg: sentence, path: [key] }];
      });
    }),
  );
}
