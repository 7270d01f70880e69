import type { OpenAPIObject } from '@nestjs/swagger';
import { operationsOf, type Operation } from './operations-of.js';

type Content = Record<string, { schema?: Schema; example?: unknown; examples?: unknown }>;
type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;
type Schema = Schemas[string];

/** Gives every body and answer without an example one that is put together from the examples of its members. */
export function withExamples(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  const schemas = copy.components?.schemas ?? {};
  for (const { operation } of operationsOf(copy)) {
    for (const media of contentsOf(operation).flatMap((content) => Object.values(content))) {
      if (media.example === undefined && media.examples === undefined && media.schema) {
        media.example = exampleOf(media.schema, schemas);
      }
    }
  }
  return copy;
}

function contentsOf({ requestBody, responses }: Operation): Content[] {
  return [requestBody, ...Object.values(responses)].flatMap((part) =>
    part && 'content' in part && part.content ? [part.content] : [],
  );
}

/** An example of a schema; undefined where nothing in it has one. */
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
