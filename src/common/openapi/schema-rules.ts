import { ApiExtension } from '@nestjs/swagger';

/** The generator passes on nothing else than extensions. */
const EXTENSION = 'x-schema-rules';

export interface ObjectRules {
  additionalProperties?: boolean;
  anyOf?: { required: string[] }[];
}

/** Adds rules about the whole object to a DTO's schema; they are checked elsewhere. */
export function SchemaRules(rules: ObjectRules): ClassDecorator {
  return ApiExtension(EXTENSION, rules);
}

/** Moves the rules from their extension into the schemas. */
export function withSchemaRules<Schemas extends Record<string, object>>(schemas: Schemas): Schemas {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const { [EXTENSION]: rules, ...rest }: Record<string, unknown> = { ...schema };
      return [name, { ...rest, ...Object(rules) }];
    }),
  ) as Schemas;
}
