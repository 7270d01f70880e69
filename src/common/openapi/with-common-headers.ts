import type { OpenAPIObject } from '@nestjs/swagger';
import { operationsOf } from './operations-of.js';

const REQUEST_ID = 'X-Request-Id';
const RETRY_AFTER = 'Retry-After';
/** Statuses that say when to come back. */
const WITH_RETRY_AFTER = ['429', '503'];

/** Adds the headers that do not depend on the operation to every answer of the document. */
export function withCommonHeaders(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  for (const { operation } of operationsOf(copy)) {
    for (const [status, response] of Object.entries(operation.responses)) {
      if (response && !('$ref' in response)) {
        response.headers = {
          ...response.headers,
          [REQUEST_ID]: reference(REQUEST_ID),
          ...(WITH_RETRY_AFTER.includes(status) && { [RETRY_AFTER]: reference(RETRY_AFTER) }),
        };
      }
    }
  }
  copy.components = {
    ...copy.components,
    headers: {
      [REQUEST_ID]: {
        description:
          'Id of the request: the one that came in this header, else a new one. Logs carry it too.',
        schema: { type: 'string', maxLength: 128 },
        example: '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50',
      },
      [RETRY_AFTER]: {
        description: 'Seconds after which to try again.',
        schema: { type: 'integer', minimum: 0 },
        example: 41,
      },
    },
  };
  return copy;
}

function reference(header: string): { $ref: string } {
  return { $ref: `#/components/headers/${header}` };
}
