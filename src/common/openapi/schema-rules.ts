import { ApiExtension } from '@nestjs/swagger';

/** The generator passes on nothing else than extensions. */
const EXTENSION = 'x-schema-rules';

/** JSON Schema, which may bring schemas of its own. */
interface ObjectRules {
  [keyword: string]: unknown;
  oneOf?: unknown[];
  $defs?: Record<string, object>;
}

/** Adds rules about the whole object to a DTO's schema; a choice of schemas takes its place. */
export function SchemaRules(rules: ObjectRules): ClassDecorator {
  return ApiExtension(EXTENSION, rules);
}

/** Moves the rules from their extension into the schemas, and the schemas that they bring beside those of the DTOs. */
export function withSchemaRules<Schemas extends Record<string, object>>(schemas: Schemas): Schemas {
  const all = Object.entries(schemas).flatMap(([name, schema]) => {
    const { [EXTENSION]: rules, ...rest }: Record<string, unknown> = { ...schema };
    const { $defs, ...own }: ObjectRules = { ...Object(rules) };
    return [...Object.entries($defs ?? {}), [name, own.oneOf ? own : { ...rest, ...own }]];
  });
  const text = JSON.stringify(Object.fromEntries(all));
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/')) as Schemas;
}
