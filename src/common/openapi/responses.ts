import { ApiProperty, type ApiResponseSchemaHost, getSchemaPath } from '@nestjs/swagger';
import type { DtoClass } from '../validation/field.js';

export class SuccessDto {
  @ApiProperty({ example: true })
  success: boolean;
}

export const SUCCESS: SuccessDto = { success: true };

export function listWithNulls(type: DtoClass): ApiResponseSchemaHost['schema'] {
  return {
    type: 'array',
    items: { oneOf: [{ $ref: getSchemaPath(type) }, { type: 'null' }] },
  };
}
