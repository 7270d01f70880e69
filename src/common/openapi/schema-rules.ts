import { ApiExtension } from '@nestjs/swagger';

/** The extension that carries the rules through the generator, which passes on nothing else. */
const EXTENSION = 'x-schema-rules';

/** Rules of JSON Schema for objects as a whole, which the generator has no decorators for. */
export interface ObjectRules {
  additionalProperties?: boolean;
  /** Members that must be there, in one of these combinations. */
  anyOf?: { required: string[] }[];
}

/** Adds rules about the object as a whole to the schema of a DTO class. They are checked elsewhere. */
export function SchemaRules(rules: ObjectRules): ClassDecorator {
  return ApiExtension(EXTENSION, rules);
}

/** The schemas of a document with these rules as members of theirs. */
export function withSchemaRules<Schemas extends Record<string, object>>(schemas: Schemas): Schemas {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const { [EXTENSION]: rules, ...rest }: Record<string, unknown> = { ...schema };
      return [name, { ...rest, ...Object(rules) }];
    }),
  ) as Schemas;
}
