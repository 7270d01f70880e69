import type { ApiPropertyOptions } from '@nestjs/swagger';

/** What OpenAPI says of the keys of a map. */
export interface KeySchema {
  enum?: readonly string[];
  pattern?: string;
  maxLength?: number;
}

/** The OpenAPI schema of an object used as a map. `propertyNames` is of JSON Schema, so new in OpenAPI 3.1. */
export function mapSchema(values: Record<string, unknown>, keys?: KeySchema): ApiPropertyOptions {
  const map = { type: 'object' as const, additionalProperties: values };
  return keys ? Object.assign(map, { propertyNames: keys }) : map;
}
