import { ValidateNested } from 'class-validator';
import { composeDecorators } from './compose-decorators.js';
import type { DtoClass } from './dto-class.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';
import { isPlainObject } from './plain-object.js';
import { extraMembers, rememberExtraMembers, toDto } from './to-dto.js';

export interface NestedOptions extends FieldOptions {
  type: DtoClass;
  /** The only members the object may have; others are `extra_forbidden`. Absent: others are ignored. */
  onlyMembers?: readonly string[];
  /** Machine type of the failure when the value is no object. */
  notAnObject?: string;
}

/** An object with rules of its own. */
export function Nested(options: NestedOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: options.type }, (value) => {
      if (!isPlainObject(value)) {
        return value;
      }
      const dto = toDto(options.type, value);
      if (options.onlyMembers) {
        rememberExtraMembers(dto, value, options.onlyMembers);
      }
      return dto;
    }),
    ValidateNested(),
    fieldRule('nested', options, (value) => {
      if (!(value instanceof options.type)) {
        return [{ type: options.notAnObject ?? 'model_attributes_type', msg: 'Expected an object.' }];
      }
      return extraMembers(value).map((member) => ({
        type: 'extra_forbidden',
        msg: 'This member is not known here.',
        path: [member],
      }));
    }),
  );
}
