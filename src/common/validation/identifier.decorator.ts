import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

/** A UUID, with or without dashes. */
export function Identifier(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String, format: 'uuid' }),
    fieldRule('identifier', options, (value) => {
      if (typeof value !== 'string') {
        return [{ type: 'uuid_type', msg: 'Expected a UUID as text.' }];
      }
      return UUID.test(value)
        ? []
        : [{ type: 'uuid_parsing', msg: 'Expected a UUID: 32 hexadecimal digits.' }];
    }),
  );
}
