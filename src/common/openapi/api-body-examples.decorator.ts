import { applyDecorators } from '@nestjs/common';
import { ApiBody, ApiExtraModels, getSchemaPath } from '@nestjs/swagger';
import type { DtoClass } from '../validation/dto-class.js';

export interface BodyExample {
  summary: string;
  value: object;
}

/** Documents the body of an operation with several examples, by name; the first is what "Try it out" offers. */
export function ApiBodyExamples(
  type: DtoClass,
  examples: Record<string, BodyExample>,
): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiExtraModels(type),
    ApiBody({ schema: { $ref: getSchemaPath(type) }, examples, required: true }),
  );
}
