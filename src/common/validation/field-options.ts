import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { composeDecorators } from './compose-decorators.js';
import { member, type Coerce } from './field-registry.js';
import type { Presence } from './field-rule.js';

/** What every field decorator takes: presence, and what OpenAPI says of the member. */
export interface FieldOptions extends Presence {
  description: string;
  /** null counts as absent. */
  nullIsAbsent?: boolean;
  example?: unknown;
  default?: unknown;
}

/** Makes the property a member of the input, with its coercion, and documents it. */
export function documentedField(
  options: FieldOptions,
  schema: ApiPropertyOptions,
  coerce: Coerce = (value) => value,
): PropertyDecorator {
  return composeDecorators(
    member((value) => (value === null && options.nullIsAbsent === true ? undefined : coerce(value))),
    ApiProperty(
      Object.assign({}, schema, {
        description: options.description,
        required: options.required ?? false,
        ...(options.nullable === true && { nullable: true }),
        ...(options.example !== undefined && { example: options.example }),
        ...(options.default !== undefined && { default: options.default }),
      }),
    ),
  );
}
