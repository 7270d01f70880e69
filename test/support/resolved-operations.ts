import type { OpenAPIObject } from '@nestjs/swagger';
import { type DocumentedOperation, operationsOf } from '../../src/common/openapi/operations.js';

/** Every operation of a document, with the responses that it shares with others in place of references to them. */
export function resolvedOperations(document: OpenAPIObject): DocumentedOperation[] {
  const shared = document.components?.responses ?? {};
  return operationsOf(document).map(({ name, operation }) => ({
    name,
    operation: {
      ...operation,
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([status, response]) => [
          status,
          response && '$ref' in response ? shared[response.$ref.split('/').at(-1) ?? ''] : response,
        ]),
      ),
    },
  }));
}
