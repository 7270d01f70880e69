import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';
import { mapSchema, type KeySchema } from './map-schema.js';
import { isPlainObject } from './plain-object.js';
import { textProblems } from './text.decorator.js';
import { TooMany, unlessTooMany } from './too-many.js';

export interface TextMapOptions extends FieldOptions {
  /** Schema of the keys in OpenAPI; it is `keyRule` that checks them. */
  keySchema?: KeySchema;
  /** The sentence for a bad key, or null. */
  keyRule: (key: string) => string | null;
}

/** An object whose values are strings; arrives as a `Map`. */
export function TextMap(options: TextMapOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, mapSchema({ type: 'string' }, options.keySchema), (value) => {
      if (!isPlainObject(value)) {
        return value;
      }
      const entries = Object.entries(value);
      return unlessTooMany(entries.length, () => new Map(entries));
    }),
    fieldRule('textMap', options, (value) => {
      if (value instanceof TooMany) {
        return [value.problem];
      }
      if (!(value instanceof Map)) {
        return [{ type: 'dict_type', msg: 'Expected an object whose values are strings.' }];
      }
      return [...value].flatMap(([key, entry]: [string, unknown]) => {
        const sentence = options.keyRule(key);
        return sentence === null
          ? textProblems(entry).map((problem) => ({ ...problem, path: [key] }))
          : [{ type: 'value_error', msg: sentence, path: [key] }];
      });
    }),
  );
}
