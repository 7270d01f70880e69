import type { OpenAPIObject } from '@nestjs/swagger';

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const;

type PathItem = OpenAPIObject['paths'][string];

export type Operation = NonNullable<PathItem['get']>;

export type Parameter = Exclude<NonNullable<Operation['parameters']>[number], { $ref: string }>;

export type Response = Exclude<NonNullable<Operation['responses'][string]>, { $ref: string }>;

export type MediaType = NonNullable<Response['content']>[string];

export type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;

export type Schema = Schemas[string];

export interface DocumentedOperation {
  name: string;
  operation: Operation;
}

export function operationsOf(document: OpenAPIObject): DocumentedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation ? [{ name: `${method.toUpperCase()} ${path}`, operation }] : [];
    }),
  );
}

/** @throws Error when the document has no such operation */
export function operationNamed(document: OpenAPIObject, name: string): DocumentedOperation {
  const found = operationsOf(document).find((one) => one.name === name);
  if (!found) {
    throw new Error(`the document has no operation ${name}`);
  }
  return found;
}

export function dereferenced(
  schema: Schema | undefined,
  schemas: Schemas,
): Exclude<Schema, { $ref: string }> {
  return schema && '$ref' in schema
    ? dereferenced(schemas[schema.$ref.split('/').at(-1) ?? ''], schemas)
    : (schema ?? {});
}
