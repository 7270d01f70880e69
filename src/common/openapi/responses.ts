import { applyDecorators } from '@nestjs/common';
import { ApiBody, ApiExtraModels, ApiProperty, ApiSchema, getSchemaPath } from '@nestjs/swagger';
import type { DtoClass } from '../validation/field.js';

@ApiSchema({ name: 'Success' })
export class SuccessDto {
  @ApiProperty({ example: true })
  success: boolean;
}

/** The response of actions. */
export const SUCCESS: SuccessDto = { success: true };

interface BodyExample {
  summary: string;
  value: object;
}

/** Documents the body of an operation with several examples, by name. "Try it out" offers the first. */
export function ApiBodyExamples(
  type: DtoClass,
  examples: Record<string, BodyExample>,
): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiExtraModels(type),
    ApiBody({ schema: { $ref: getSchemaPath(type) }, examples, required: true }),
  );
}

/** Documents `next_page_id` of a page. */
export function NextPageId(): PropertyDecorator {
  return ApiProperty({
    type: String,
    nullable: true,
    description: 'Pass it as `page_id` for the next page.',
    example: null,
  });
}
