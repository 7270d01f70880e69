import { ApiProperty, type ApiResponseSchemaHost, getSchemaPath } from '@nestjs/swagger';
import type { DtoClass } from '../validation/field.js';

export class SuccessDto {
  @ApiProperty({ example: true })
  success: boolean;
}

/** The response of actions. */
export const SUCCESS: SuccessDto = { success: true };

/** The schema of a list that has null for each id that is unknown. */
export function listWithNulls(type: DtoClass): ApiResponseSchemaHost['schema'] {
  return {
    type: 'array',
    items: { oneOf: [{ $ref: getSchemaPath(type) }, { type: 'null' }] },
  };
}
