import { STATUS_CODES } from 'node:http';
import type { OpenAPIObject } from '@nestjs/swagger';
import { operationsOf, type Response } from './operations.js';
import { isUsualDetail } from './problem-responses.js';

const MAX_WORDS = 8;

export function withSharedResponses(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  const errors = operationsOf(copy)
    // An order that does not depend on that of imports, as names may.
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ operation: { responses } }) =>
      Object.entries(responses).flatMap(([status, response]) =>
        response && !('$ref' in response) && Number(status) >= 400
          ? [{ status, response, responses, text: `${status} ${JSON.stringify(response)}` }]
          : [],
      ),
    );
  const shared: Record<string, Response> = {};
  for (const same of Map.groupBy(errors, ({ text }) => text).values()) {
    const [first] = same;
    if (first && same.length > 1) {
      const name = freeName(nameOf(Number(first.status), first.response), shared);
      shared[name] = first.response;
      for (const { status, responses } of same) {
        responses[status] = { $ref: `#/components/responses/${name}` };
      }
    }
  }
  copy.components = { ...copy.components, responses: shared };
  return copy;
}

/** For example `NotFoundThereIsNoSandboxWithThisId`. */
function nameOf(status: number, { description, content = {} }: Response): string {
  const example: unknown = content['application/json']?.example;
  const { detail } = Object(example) as { detail?: string | { loc: string[] }[] };
  const about = Array.isArray(detail) ? detail.flatMap(({ loc }) => loc).join(' ') : (detail ?? description);
  return joined(`${STATUS_CODES[status]} ${isUsualDetail(status, about) ? '' : firstWords(about)}`);
}

function firstWords(text: string): string {
  return text.split(/\s+/).slice(0, MAX_WORDS).join(' ');
}

function joined(text: string): string {
  return [...text.matchAll(/(\w)(\w*)/g)]
    .map(([, initial = '', rest = '']) => `${initial.toUpperCase()}${rest}`)
    .join('');
}

function freeName(name: string, taken: Record<string, unknown>): string {
  let free = name;
  for (let number = 2; free in taken; number += 1) {
    free = `${name}${number}`;
  }
  return free;
}
