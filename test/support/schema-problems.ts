/** A schema as `openapi.json` holds it, and as agent servers publish theirs. */
export interface JsonSchema {
  [keyword: string]: unknown;
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  propertyNames?: JsonSchema;
  maxProperties?: number;
  items?: JsonSchema;
  prefixItems?: JsonSchema[];
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  allOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  not?: JsonSchema;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
}

const KNOWN = new Set(
  [
    // These say nothing about a value.
    'description example default writeOnly discriminator',
    '$ref type enum const properties required additionalProperties propertyNames maxProperties',
    'items prefixItems minItems maxItems uniqueItems allOf anyOf oneOf not',
    'minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength pattern format',
  ].flatMap((words) => words.split(' ')),
);
const FORMATS: Record<string, RegExp> = {
  // Bytes may be any.
  binary: /^/,
  'date-time': /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  email: /^[^@\s]+@[^@\s]+$/,
  password: /^/,
  path: /^/,
  // RFC 3986: letters beyond ASCII are encoded.
  uri: /^[a-z][a-z0-9+.-]*:[!-~]+$/i,
};

/**
 * Lists where a value breaks a JSON schema of the document; knows the keywords that the document uses.
 *
 * @throws Error for a keyword or a format it does not know, so that nothing passes unseen
 */
export function schemaProblems(
  value: unknown,
  schema: JsonSchema,
  schemas: Record<string, JsonSchema>,
  at = '$',
): string[] {
  const unknown = Object.keys(schema).filter((key) => !KNOWN.has(key));
  if (unknown.length > 0) {
    throw new Error(`${at}: this check does not know ${unknown.join(', ')}`);
  }
  const inner = (child: unknown, rule: JsonSchema, place: string): string[] =>
    schemaProblems(child, rule, schemas, place);
  const fits = (rule: JsonSchema): boolean => inner(value, rule, at).length === 0;
  return [
    ...(schema.$ref === undefined ? [] : inner(value, referenced(schema.$ref, schemas), at)),
    ...(schema.allOf ?? []).flatMap((rule) => inner(value, rule, at)),
    ...(schema.anyOf === undefined || schema.anyOf.some(fits) ? [] : [`${at}: fits nothing of anyOf`]),
    ...(schema.oneOf === undefined || schema.oneOf.filter(fits).length === 1
      ? []
      : [`${at}: fits not exactly one of oneOf`]),
    ...(schema.not === undefined || !fits(schema.not) ? [] : [`${at}: fits what it must not`]),
    ...(hasType(value, schema.type) ? [] : [`${at}: is not ${String(schema.type)}`]),
    ...(schema.enum === undefined || schema.enum.includes(value) ? [] : [`${at}: is none of the enum`]),
    ...(schema.const === undefined || schema.const === value
      ? []
      : [`${at}: is not ${JSON.stringify(schema.const)}`]),
    ...(typeof value === 'string' ? textProblems(value, schema, at) : []),
    ...(typeof value === 'number' && !isWithin(value, schema) ? [`${at}: is out of bounds`] : []),
    ...(Array.isArray(value) &&
    (value.length < (schema.minItems ?? 0) || value.length > (schema.maxItems ?? Infinity))
      ? [`${at}: is too short or too long`]
      : []),
    ...(Array.isArray(value) && schema.uniqueItems === true && new Set(value).size < value.length
      ? [`${at}: has something twice`]
      : []),
    ...(Array.isArray(value) && schema.items
      ? value.flatMap((element, index) => inner(element, schema.items ?? {}, `${at}[${index}]`))
      : []),
    ...(Array.isArray(value)
      ? value
          .slice(0, schema.prefixItems?.length ?? 0)
          .flatMap((element, index) => inner(element, schema.prefixItems?.[index] ?? {}, `${at}[${index}]`))
      : []),
    ...(isObject(value) && Object.keys(value).length > (schema.maxProperties ?? Infinity)
      ? [`${at}: has too many members`]
      : []),
    ...(isObject(value) ? objectProblems(value, schema, at, inner) : []),
  ];
}

function referenced(reference: string, schemas: Record<string, JsonSchema>): JsonSchema {
  const schema = schemas[reference.replace('#/components/schemas/', '')];
  if (!schema) {
    throw new Error(`${reference} leads nowhere`);
  }
  return schema;
}

function hasType(value: unknown, type: string | string[] | undefined): boolean {
  if (type === undefined) {
    return true;
  }
  const own = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  return [type].flat().some((name) => (name === 'integer' ? Number.isInteger(value) : name === own));
}

function isWithin(
  value: number,
  { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonSchema,
): boolean {
  return (
    value >= (minimum ?? -Infinity) &&
    value <= (maximum ?? Infinity) &&
    value > (exclusiveMinimum ?? -Infinity) &&
    value < (exclusiveMaximum ?? Infinity)
  );
}

function textProblems(value: string, schema: JsonSchema, at: string): string[] {
  const format = schema.format === undefined ? /^/ : FORMATS[schema.format];
  if (!format) {
    throw new Error(`${at}: this check does not know the format ${schema.format}`);
  }
  return [
    ...(format.test(value) ? [] : [`${at}: is no ${schema.format}`]),
    ...(schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(value)
      ? []
      : [`${at}: does not match ${schema.pattern}`]),
    ...(value.length < (schema.minLength ?? 0) || value.length > (schema.maxLength ?? Infinity)
      ? [`${at}: is too short or too long`]
      : []),
  ];
}

function objectProblems(
  value: Record<string, unknown>,
  schema: JsonSchema,
  at: string,
  inner: (child: unknown, rule: JsonSchema, place: string) => string[],
): string[] {
  const { properties = {}, additionalProperties = true, propertyNames, required = [] } = schema;
  const others = Object.keys(value).filter((name) => !Object.hasOwn(properties, name));
  return [
    ...required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}.${name}: is missing`),
    ...Object.entries(properties)
      .filter(([name]) => Object.hasOwn(value, name))
      .flatMap(([name, rule]) => inner(value[name], rule, `${at}.${name}`)),
    ...others.flatMap((name) =>
      typeof additionalProperties === 'object'
        ? inner(value[name], additionalProperties, `${at}.${name}`)
        : additionalProperties
          ? []
          : [`${at}.${name}: is not known`],
    ),
    ...(propertyNames
      ? Object.keys(value).flatMap((name) => inner(name, propertyNames, `${at}.${name}`))
      : []),
  ];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
