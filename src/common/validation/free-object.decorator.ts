import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';
import { mapSchema } from './map-schema.js';
import { isPlainObject } from './plain-object.js';

/** An object whose members are nobody's business here. */
export function FreeObject(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, mapSchema({})),
    fieldRule('freeObject', options, (value) =>
      isPlainObject(value) ? [] : [{ type: 'dict_type', msg: 'Expected an object.' }],
    ),
  );
}
