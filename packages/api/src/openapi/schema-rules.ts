import { isDeepStrictEqual } from 'node:util';
import { ApiExtension } from '@nestjs/swagger';
import type { Schema, Schemas } from './operations.js';

/** The generator passes on nothing else than extensions. */
const EXTENSION = 'x-schema-rules';

/** JSON Schema, which may bring schemas of its own. */
interface ObjectRules {
  [keyword: string]: unknown;
  oneOf?: unknown[];
  $defs?: Record<string, object>;
}

/** Adds rules about the whole object to a DTO's schema and to those of its parent; a choice of schemas takes its place. */
export function SchemaRules(rules: ObjectRules): ClassDecorator {
  // The parent's extension would win over another one of the same name.
  return ApiExtension(`${EXTENSION}-${Object.keys(rules).join('-')}`, rules);
}

/** Moves the rules from their extension into the schemas, and the schemas that they bring beside those of the DTOs. */
export function withSchemaRules(schemas: Schemas): Schemas {
  const all = Object.entries(schemas).flatMap(([name, schema]) => {
    const entries = Object.entries(schema);
    const rest = Object.fromEntries(entries.filter(([keyword]) => !keyword.startsWith(EXTENSION)));
    const rules = entries
      .filter(([keyword]) => keyword.startsWith(EXTENSION))
      .map(([, each]) => each as object);
    const { $defs, ...own }: ObjectRules = Object.assign({}, ...rules);
    return [...Object.entries($defs ?? {}), [name, own.oneOf ? own : { ...rest, ...own }]];
  });
  const text = JSON.stringify(Object.fromEntries(all));
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/')) as Schemas;
}

/** Below it, a schema reads better whole. */
const MIN_SHARED_CHARACTERS = 500;
const PLAIN = ['type', 'properties', 'required', 'description'];

interface ObjectSchema {
  type?: string;
  properties: Record<string, Schema>;
  required?: string[];
}

/** Nest repeats the members of a DTO in the schema of each that extends it; this refers to the first instead. */
export function withExtensions(schemas: Schemas): Schemas {
  const plain = Object.entries(schemas)
    .flatMap(([name, schema]) => (isPlainObject(schema) ? [{ name, schema }] : []))
    // The largest first, and an order that does not depend on that of imports.
    .toSorted((a, b) => sizeOf(b.schema) - sizeOf(a.schema) || (a.name < b.name ? -1 : 1));
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const base = isPlainObject(schema) && plain.find((each) => extendsOther(schema, each.schema));
      return [name, base ? extended(schema, base.name, base.schema) : schema];
    }),
  );
}

function isPlainObject(schema: Schema): schema is Schema & ObjectSchema {
  return 'properties' in schema && Object.keys(schema).every((keyword) => PLAIN.includes(keyword));
}

function extendsOther(schema: ObjectSchema, base: ObjectSchema): boolean {
  const names = Object.keys(base.properties);
  return (
    names.length < Object.keys(schema.properties).length &&
    sizeOf(base) >= MIN_SHARED_CHARACTERS &&
    names.every((name) => isDeepStrictEqual(schema.properties[name], base.properties[name])) &&
    names.every((name) => isRequired(schema, name) === isRequired(base, name))
  );
}

function extended(schema: Schema & ObjectSchema, name: string, base: ObjectSchema): Schema {
  const { type: _object, properties, required = [], ...rest }: ObjectSchema = schema;
  const own = required.filter((member) => !(member in base.properties));
  return {
    ...rest,
    allOf: [
      { $ref: `#/components/schemas/${name}` },
      {
        type: 'object',
        properties: Object.fromEntries(
          Object.entries(properties).filter(([member]) => !(member in base.properties)),
        ),
        ...(own.length > 0 && { required: own }),
      },
    ],
  };
}

function isRequired({ required = [] }: ObjectSchema, name: string): boolean {
  return required.includes(name);
}

function sizeOf({ properties }: ObjectSchema): number {
  return JSON.stringify(properties).length;
}
