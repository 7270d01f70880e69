import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { OpenAPIObject } from '@nestjs/swagger';
import {
  type DocumentedOperation,
  operationsOf,
  type Schema,
  type Schemas,
} from '@slipway/api/openapi/operations.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../src/organizations/installation-organization.js';

const SHARED = /^#\/components\/(examples|headers|parameters|requestBodies|responses)\/(\w+)$/;

/** A document with what its operations share, and schemas with what they share, in place of references to it. */
export function resolvedDocument<T extends Pick<OpenAPIObject, 'components'>>(document: T): T {
  const components = Object(document.components) as Record<string, Record<string, object>>;
  const resolve = (_name: string, value: unknown): unknown => {
    const [, kind = '', name = ''] = SHARED.exec(String(Object(value).$ref)) ?? [];
    const part = components[kind]?.[name];
    return part ? (JSON.parse(JSON.stringify(part), resolve) as unknown) : value;
  };
  const resolved = JSON.parse(JSON.stringify(document), resolve) as T;
  return {
    ...resolved,
    components: { ...resolved.components, schemas: wholeSchemas(resolved.components?.schemas ?? {}) },
  };
}

export function resolvedOperations(document: OpenAPIObject): DocumentedOperation[] {
  return operationsOf(resolvedDocument(document));
}

/** The document as it is committed: rows of a table are written before a service runs. */
export function committedDocument(): OpenAPIObject {
  const file = path.join(import.meta.dirname, '../../openapi.json');
  return JSON.parse(readFileSync(file, 'utf8')) as OpenAPIObject;
}

/** What users have in their personal organizations, too: there they change it themselves. */
const OF_PERSONAL = /^\/api\/organizations\/\{organization_id\}\/(?:profiles|secrets|settings)/;

/** The organization in the path of an operation that the user of an id may change, if anyone may. */
export function organizationOf(template: string, userId: string): string {
  return OF_PERSONAL.test(template) ? userId : INSTALLATION_ORGANIZATION_ID;
}

/** How to ask for an operation, with one id in all places of its path. @param userId who asks */
export function addressOf(name: string, id: string, userId: string): { method: string; path: string } {
  const [method = '', template = ''] = name.split(' ');
  const path = template
    .replace('{organization_id}', organizationOf(template, userId))
    .replaceAll(/\{\w+\}/g, id);
  return { method, path };
}

/** Schemas that extend another, with the members of that. */
export function wholeSchemas(schemas: Schemas): Schemas {
  const wholeOf = (schema: Schema): Schema => {
    const [base, own] = '$ref' in schema ? [] : (schema.allOf ?? []);
    if ('$ref' in schema || !base || !('$ref' in base) || !own || '$ref' in own) {
      return schema;
    }
    const { allOf: _both, ...rest } = schema;
    const whole = wholeOf(schemas[base.$ref.split('/').at(-1) ?? ''] ?? {});
    return '$ref' in whole
      ? schema
      : {
          ...rest,
          ...own,
          properties: { ...whole.properties, ...own.properties },
          required: [...(whole.required ?? []), ...(own.required ?? [])],
        };
  };
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, wholeOf(schema)]));
}
