import { isDeepStrictEqual } from 'node:util';
import type { OpenAPIObject } from '@nestjs/swagger';
import {
  dereferenced,
  type MediaType,
  type Operation,
  operationsOf,
  type Schema,
  type Schemas,
} from './operations.js';
import { withExtensions } from './schema-rules.js';

const WITH_RETRY_AFTER = ['429', '503'];

/** Sorts paths and components, so that the order of imports does not matter. */
export function openApiText(document: OpenAPIObject): string {
  const { components = {}, paths, ...rest } = document;
  const sorted = {
    ...rest,
    paths: sortedByKey(paths),
    components: Object.fromEntries(
      Object.entries(components).map(([kind, members]: [string, Record<string, unknown>]) => [
        kind,
        sortedByKey(members),
      ]),
    ),
  };
  return `${JSON.stringify(sorted, null, 2)}\n`;
}

/** Names schemas as clients know them: classes end in `Dto`. */
export function withoutSuffixes(document: OpenAPIObject): OpenAPIObject {
  const text = JSON.stringify(document).replaceAll(/("#\/components\/schemas\/\w+)Dto"/g, '$1"');
  const renamed = JSON.parse(text) as OpenAPIObject;
  const schemas = Object.entries(renamed.components?.schemas ?? {});
  renamed.components = {
    ...renamed.components,
    schemas: Object.fromEntries(schemas.map(([name, schema]) => [name.replace(/Dto$/, ''), schema])),
  };
  return renamed;
}

/** What every answer has, whichever route it is of. */
export function withCommonHeaders(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  for (const { operation } of operationsOf(copy)) {
    for (const [status, response] of Object.entries(operation.responses)) {
      if (response && !('$ref' in response)) {
        response.headers = {
          ...response.headers,
          'X-Request-Id': { $ref: '#/components/headers/RequestId' },
          ...(WITH_RETRY_AFTER.includes(status) && {
            'Retry-After': { $ref: '#/components/headers/RetryAfter' },
          }),
        };
      }
    }
  }
  copy.components = {
    ...copy.components,
    headers: {
      RequestId: {
        description:
          'Id of the request: the one that came in this header, else a new one. Logs have the first as `caller_request_id`, the second as `request_id`.',
        schema: { type: 'string', maxLength: 128 },
        example: '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50',
      },
      RetryAfter: {
        description: 'Seconds after which to try again.',
        schema: { type: 'integer', minimum: 0 },
        example: 41,
      },
    },
  };
  return copy;
}

/** Requests have examples. Readers make that of an answer themselves, of those of its members: only others are written out. */
export function withExamples(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  const schemas = copy.components?.schemas ?? {};
  for (const { operation } of operationsOf(copy)) {
    for (const media of mediaOf(operation.requestBody)) {
      if (media.example === undefined && media.examples === undefined && media.schema) {
        media.example = requestExampleOf(media.schema, schemas);
      }
    }
    for (const media of Object.values(operation.responses).flatMap(mediaOf)) {
      if (media.schema && isDeepStrictEqual(media.example, exampleOf(media.schema, schemas))) {
        delete media.example;
      }
    }
  }
  return copy;
}

function mediaOf(part: Operation['requestBody'] | Operation['responses'][string]): MediaType[] {
  return part && 'content' in part ? Object.values(part.content ?? {}) : [];
}

/** Required members alone: "Try it out" offers it, and a member that is left out changes nothing. */
function requestExampleOf(schema: Schema, schemas: Schemas): unknown {
  const target = dereferenced(schema, schemas);
  const { properties = {}, required = [], example } = target;
  const [choice] = target.allOf ?? target.anyOf ?? target.oneOf ?? [];
  if (choice && example === undefined) {
    return requestExampleOf(choice, schemas);
  }
  const named = Object.entries(properties).filter(([name]) => required.includes(name));
  return exampleOf(
    target.properties ? { ...target, properties: Object.fromEntries(named) } : target,
    schemas,
  );
}

/** Made of those of its members; the first of a choice. */
export function exampleOf(schema: Schema, schemas: Schemas): unknown {
  if ('$ref' in schema) {
    const target = schemas[schema.$ref.split('/').at(-1) ?? ''];
    return target === undefined ? undefined : exampleOf(target, schemas);
  }
  if (schema.example !== undefined) {
    return schema.example;
  }
  const [choice] = schema.allOf ?? schema.anyOf ?? schema.oneOf ?? [];
  if (choice) {
    return exampleOf(choice, schemas);
  }
  if (schema.properties) {
    return Object.fromEntries(
      Object.entries(schema.properties)
        .map(([name, member]): [string, unknown] => [name, exampleOf(member, schemas)])
        .filter(([, value]) => value !== undefined),
    );
  }
  if (schema.items) {
    const element = exampleOf(schema.items, schemas);
    return element === undefined ? [] : [element];
  }
  return schema.default;
}

/** The generator writes `summary: ""` where nothing is given. */
export function withoutEmptyMembers(document: OpenAPIObject): OpenAPIObject {
  return JSON.parse(
    JSON.stringify(document, (key, value: unknown) =>
      (key === 'summary' || key === 'description') && value === '' ? undefined : value,
    ),
  ) as OpenAPIObject;
}

/** Nest repeats the values of an enum that has a schema of its own, and what readers assume anyway. */
export function withTerseParameters(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  const names = new Map(
    Object.entries(copy.components?.schemas ?? {}).flatMap(([name, schema]) =>
      'enum' in schema ? [[JSON.stringify(schema.enum), name]] : [],
    ),
  );
  for (const parameter of operationsOf(copy).flatMap(({ operation }) => operation.parameters ?? [])) {
    if ('in' in parameter && parameter.schema && !('$ref' in parameter.schema)) {
      const { example, enum: values, type, ...rest } = parameter.schema;
      const name = names.get(JSON.stringify(values));
      parameter.required = parameter.required || undefined;
      parameter.schema = {
        ...rest,
        ...(!isDeepStrictEqual(example, rest.default) && { example }),
        ...(name === undefined
          ? { type, enum: values }
          : { allOf: [{ $ref: `#/components/schemas/${name}` }] }),
      };
    }
  }
  return copy;
}

/** Writes members that several schemas have in one of them. */
export function withExtendedSchemas(document: OpenAPIObject): OpenAPIObject {
  const { components = {} } = document;
  return { ...document, components: { ...components, schemas: withExtensions(components.schemas ?? {}) } };
}

function sortedByKey<T>(members: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
