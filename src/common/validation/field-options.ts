import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Expose } from 'class-transformer';
import { composeDecorators } from './compose-decorators.js';
import type { Presence } from './field-rule.js';

/** What every field decorator takes: presence, and what OpenAPI says of the member. */
export interface FieldOptions extends Presence {
  description: string;
  example?: unknown;
  default?: unknown;
}

/** Exposes the member to class-transformer (unlisted members are dropped) and documents it. */
export function documentedField(options: FieldOptions, schema: ApiPropertyOptions): PropertyDecorator {
  return composeDecorators(
    Expose(),
    ApiProperty({
      ...schema,
      description: options.description,
      required: options.required ?? false,
      ...(options.nullable === true && { nullable: true }),
      ...(options.example !== undefined && { example: options.example }),
      ...(options.default !== undefined && { default: options.default }),
    } as ApiPropertyOptions),
  );
}
