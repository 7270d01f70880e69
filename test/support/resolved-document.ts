import type { OpenAPIObject } from '@nestjs/swagger';
import { type DocumentedOperation, operationsOf } from '../../src/common/openapi/operations.js';

const SHARED = /^#\/components\/(examples|parameters|responses)\/(\w+)$/;

/** A document with the examples, parameters and responses that operations share in place of references to them. */
export function resolvedDocument<T extends Pick<OpenAPIObject, 'components'>>(document: T): T {
  const components = Object(document.components) as Record<string, Record<string, object>>;
  const resolve = (_name: string, value: unknown): unknown => {
    const [, kind = '', name = ''] = SHARED.exec(String(Object(value).$ref)) ?? [];
    const part = components[kind]?.[name];
    return part ? (JSON.parse(JSON.stringify(part), resolve) as unknown) : value;
  };
  return JSON.parse(JSON.stringify(document), resolve) as T;
}

export function resolvedOperations(document: OpenAPIObject): DocumentedOperation[] {
  return operationsOf(resolvedDocument(document));
}
