import type { OpenAPIObject } from '@nestjs/swagger';
import { isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import { type DocumentedOperation, operationsOf } from '@slipway/api/openapi/operations.js';
import { resolvedDocument } from './resolved-document.js';

/** A value of a request: where its schema stands, and how to send one of its kind. */
export interface Place {
  /** For example `POST /api/settings body.mcp_config.sse_servers`. */
  name: string;
  operation: string;
  schema: JsonObject;
  /** Names that lead to it from the body, `0` into a list; null below maps, and for parameters. */
  path: string[] | null;
  query: string | null;
}

/** All values that requests may hold, choices of schemas and what is below lists and maps included. */
export function placesOf(document: OpenAPIObject): Place[] {
  const resolved = resolvedDocument(document);
  const schemas = Object(resolved.components?.schemas) as Record<string, JsonObject>;
  return operationsOf(resolved).flatMap(({ name, operation }) => {
    const walk = (given: unknown, at: string, path: string[] | null, query: string | null): Place[] => {
      const names = new Set<string>();
      let schema: JsonObject = isJsonObject(given) ? given : {};
      while (typeof schema['$ref'] === 'string' && !names.has(schema['$ref'])) {
        names.add(schema['$ref']);
        schema = schemas[schema['$ref'].split('/').at(-1) ?? ''] ?? {};
      }
      const choices = ['oneOf', 'anyOf', 'allOf'].flatMap((key) => asList(schema[key]));
      const { properties, additionalProperties: values, propertyNames: keys, items } = schema;
      return [
        { name: `${name} ${at}`, operation: name, schema, path, query },
        ...choices.flatMap((choice) => walk(choice, `${at}|`, path, query)),
        ...Object.entries(Object(properties)).flatMap(([member, each]) =>
          walk(each, `${at}.${member}`, path && [...path, member], null),
        ),
        ...(isJsonObject(values) ? walk(values, `${at}{}`, null, null) : []),
        ...(isJsonObject(keys) ? walk({ type: 'string', ...keys }, `${at}{key}`, null, null) : []),
        ...(isJsonObject(items) ? walk(items, `${at}[]`, path && [...path, '0'], null) : []),
      ];
    };
    const content = Object(Object(operation.requestBody).content) as Record<string, JsonObject>;
    return [
      ...Object.values(content).flatMap((media) => walk(media['schema'], 'body', [], null)),
      ...(operation.parameters ?? []).flatMap((parameter) =>
        'in' in parameter
          ? walk(
              parameter.schema,
              `${parameter.in} ${parameter.name}`,
              null,
              parameter.in === 'query' ? parameter.name : null,
            )
          : [],
      ),
    ];
  });
}

/** The body that the document shows first. */
export function exampleBodyOf({ operation }: DocumentedOperation): unknown {
  const body = Object(Object(operation.requestBody).content)['application/json'] as JsonObject | undefined;
  const [example] = Object.values(Object(body?.['examples'])) as JsonObject[];
  return body?.['example'] ?? example?.['value'];
}

export function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}
