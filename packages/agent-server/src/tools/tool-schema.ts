import { jsonAt, isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import { cleanJson, cleanText } from '@slipway/common/well-formed-text.js';
import { commonPattern } from './common-pattern.js';

const MAX_DEPTH = 24;
/** Counts nested schemas: a definition is copied for each reference to it, and may be large. */
const MAX_SCHEMAS = 2_000;
const MAX_NAME = 64;

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
/** Names of the types in other languages. */
const OTHER_TYPES = new Map(
  Object.entries({
    string: 'str text char date',
    integer: 'int int32 int64 long',
    number: 'float double decimal',
    boolean: 'bool',
    object: 'dict map',
    array: 'list tuple set',
    null: 'none',
  }).flatMap(([type, names]) => names.split(' ').map((name) => [name, type] as const)),
);
const FORMATS = new Set('date-time date time duration email hostname ipv4 ipv6 uri uuid'.split(' '));
const COMBINING_KEYWORDS = ['anyOf', 'oneOf', 'allOf'] as const;

type Schema = Record<string, unknown>;

interface RepairedSchema {
  schema: Schema;
  /** Properties of the root that had to be renamed: the original name by the new one. */
  renamed: ReadonlyMap<string, string>;
  /** What servers refuse in the original, in words for the user. */
  repairs: readonly string[];
}

/**
 * A tool's schema as every model server accepts it: an object at the root, without combinations there, references or
 * invalid keywords. It may allow more, never less: the tool itself validates the arguments.
 */
export function repairSchema(schema: unknown): RepairedSchema {
  const repair = new Repair(schema);
  const inner = repair.repaired(schema);
  if (!isJsonObject(schema) || inner['type'] !== 'object') {
    repair.found('no object at its root');
  } else if (COMBINING_KEYWORDS.some((keyword) => keyword in inner)) {
    repair.found('a combination at its root');
  }
  const root = withValidNames(asRoot(inner));
  if (root.renamed.size > 0) {
    repair.found('names of properties');
  }
  return { ...root, repairs: [...repair.repairs] };
}

export function repairedSchema(schema: unknown): Schema {
  return repairSchema(schema).schema;
}

class Repair {
  readonly repairs = new Set<string>();
  readonly #document: unknown;
  #count = 0;

  constructor(document: unknown) {
    this.#document = document;
  }

  found(problem: string): void {
    this.repairs.add(problem);
  }

  /** @param open the references that led here */
  repaired(schema: unknown, depth = 0, open: readonly string[] = []): Schema {
    this.#count += 1;
    if (!isJsonObject(schema) || depth > MAX_DEPTH || this.#count > MAX_SCHEMAS) {
      return {};
    }
    const reference = schema['$ref'] ?? schema['$dynamicRef'];
    if (typeof reference === 'string') {
      const { $ref: _, $dynamicRef: _too, ...beside } = schema;
      const target = open.includes(reference) ? undefined : this.#definition(reference);
      if (target === undefined && !open.includes(reference)) {
        this.found('a reference that leads nowhere');
      }
      const found = isJsonObject(target) ? target : {};
      return this.repaired({ ...found, ...beside }, depth, [...open, reference]);
    }
    const inner = (value: unknown): Schema => this.repaired(value, depth + 1, open);
    this.#check(schema);
    const types = typesOf(schema);
    const ofType = (type: string | undefined): Schema => ({
      ...(type !== undefined && { type }),
      ...(type === 'object' || (type === undefined && 'properties' in schema)
        ? objectKeywords(schema, inner)
        : {}),
      ...(type === 'array' || (type === undefined && ('items' in schema || 'prefixItems' in schema))
        ? { items: itemsOf(schema, inner) }
        : {}),
    });
    const named = types.filter((type) => type !== 'null');
    const choice = named.length > 1 && !COMBINING_KEYWORDS.some((keyword) => keyword in schema);
    return withNull(allowsNull(schema), {
      ...(named.length > 1 ? {} : ofType(named[0])),
      ...plainKeywords(schema),
      ...(choice ? { anyOf: named.map((type) => ofType(type)) } : combinations(schema, inner)),
    });
  }

  #check(schema: JsonObject): void {
    const { type, properties, items, prefixItems, pattern } = schema;
    const types = typesOf(schema);
    if (Array.isArray(type)) {
      this.found('a list of types');
    } else if (type !== undefined && !TYPES.has(typeName(type))) {
      this.found('an unknown type');
    }
    if (types.includes('object') && !isJsonObject(properties)) {
      this.found('an object without properties');
    }
    if (types.includes('array') && items === undefined && prefixItems === undefined) {
      this.found('an array without items');
    }
    if (typeof pattern === 'string' && !isPattern(pattern)) {
      this.found('a pattern that is none');
    }
  }

  /** What a reference inside the document names; nothing is fetched. */
  #definition(reference: string): unknown {
    if (!reference.startsWith('#')) {
      return undefined;
    }
    const path = reference
      .slice(1)
      .split('/')
      .filter((part) => part !== '');
    const names = path.map((part) => decoded(part).replaceAll('~1', '/').replaceAll('~0', '~'));
    return names.length === 0 ? this.#document : jsonAt(this.#document, ...names);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function typesOf({ type, properties, items }: JsonObject): string[] {
  const given = (Array.isArray(type) ? type : [type]).flatMap((name: unknown) => {
    const lower = typeName(name);
    const known = TYPES.has(lower) ? lower : OTHER_TYPES.get(lower);
    return known === undefined ? [] : [known];
  });
  if (given.length === 0 && isJsonObject(properties)) {
    return ['object'];
  }
  return given.length === 0 && items !== undefined ? ['array'] : [...new Set(given)];
}

const NULLS = new Set(['null', 'none']);

/** Whether it allows null, which servers like Google's know as a keyword only. */
function allowsNull(schema: JsonObject): boolean {
  const { type, nullable, enum: values, anyOf, oneOf } = schema;
  const types = [type].flat().map((name) => typeName(name));
  return (
    nullable === true ||
    (types.length > 1 && types.some((name) => NULLS.has(name))) ||
    (Array.isArray(values) && values.includes(null)) ||
    [anyOf, oneOf].some((parts) => Array.isArray(parts) && parts.some((part: unknown) => isNull(part)))
  );
}

function isNull(schema: unknown): boolean {
  const types = [jsonAt(schema, 'type')].flat();
  return jsonAt(schema, 'const') === null || (types.length === 1 && NULLS.has(typeName(types[0])));
}

function typeName(name: unknown): string {
  return typeof name === 'string' ? name.toLowerCase() : '';
}

/** A choice with one alternative left is that alternative. */
function withNull(canBeNull: boolean, { anyOf, ...own }: Schema): Schema {
  const parts = list(anyOf);
  const schema =
    parts.length === 1 ? { ...parts[0], ...own } : { ...own, ...(parts.length > 1 && { anyOf }) };
  return canBeNull && ('type' in schema || 'anyOf' in schema) ? { ...schema, nullable: true } : schema;
}

const KEYWORDS: readonly (readonly [names: string, isValid: (value: unknown) => boolean])[] = [
  ['title description', (value) => typeof value === 'string'],
  ['default', () => true],
  ['format', (value) => typeof value === 'string' && FORMATS.has(value)],
  [
    'minLength maxLength minItems maxItems minProperties maxProperties',
    (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  ],
  ['minimum maximum exclusiveMinimum exclusiveMaximum', (value) => typeof value === 'number'],
  ['multipleOf', (value) => typeof value === 'number' && value > 0],
];

function plainKeywords(schema: JsonObject): Schema {
  const values = 'const' in schema ? [schema['const']] : schema['enum'];
  const given = Array.isArray(values) ? values.filter((value: unknown) => value !== null) : [];
  const byJson = new Map(given.map((value: unknown) => [JSON.stringify(value), cleanJson(value)]));
  const plain = KEYWORDS.flatMap(([names, isValid]) =>
    names
      .split(' ')
      .flatMap((name) =>
        name in schema && isValid(schema[name]) ? [[name, cleanJson(schema[name])] as const] : [],
      ),
  );
  const { pattern } = schema;
  const common = typeof pattern === 'string' && isPattern(pattern) ? commonPattern(pattern) : null;
  return {
    ...Object.fromEntries(plain),
    ...(common !== null && { pattern: common }),
    ...(byJson.size > 0 && { enum: [...byJson.values()] }),
  };
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u').source !== '';
  } catch {
    return false;
  }
}

function objectKeywords(schema: JsonObject, inner: (value: unknown) => Schema): Schema {
  const given = isJsonObject(schema['properties']) ? schema['properties'] : {};
  // `false` forbids a property.
  const entries = Object.entries(given).filter(([, value]) => value !== false);
  const properties = Object.fromEntries(entries.map(([name, value]) => [cleanText(name), inner(value)]));
  const required = requiredOf(schema).filter((name) => Object.hasOwn(properties, name));
  const others = schema['additionalProperties'];
  return {
    properties,
    ...(required.length > 0 && { required }),
    ...(typeof others === 'boolean' && !('patternProperties' in schema) && { additionalProperties: others }),
    ...(isJsonObject(others) && { additionalProperties: Object.keys(others).length === 0 || inner(others) }),
  };
}

function requiredOf({ required }: JsonObject): string[] {
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
  return [...new Set(names)];
}

/** A list with a schema for each position becomes one of items that match any of them. */
function itemsOf({ items, prefixItems }: JsonObject, inner: (value: unknown) => Schema): Schema {
  const each = [items, prefixItems].flatMap((value) => (Array.isArray(value) ? value : []));
  if (each.length === 0) {
    return inner(items);
  }
  const rest = isJsonObject(items) ? [items] : [];
  return { anyOf: [...each, ...rest].map((item: unknown) => inner(item)) };
}

function combinations(schema: JsonObject, inner: (value: unknown) => Schema): Schema {
  const found: Schema = {};
  for (const keyword of COMBINING_KEYWORDS) {
    const given = schema[keyword];
    const parts = list(given).filter((part) => !isNull(part));
    if (parts.length > 0) {
      // Some servers do not know `oneOf`, and for a model it says the same.
      const name = keyword === 'oneOf' && !('anyOf' in schema) ? 'anyOf' : keyword;
      found[name] = parts.map((part) => inner(part));
    }
  }
  return found;
}

/** One object, with the properties of everything that is combined at the root. */
function asRoot(schema: Schema): Schema {
  const { anyOf, oneOf, allOf, ...own } = schema;
  const all = list(allOf).map((part) => asRoot(part));
  const choices = [list(anyOf), list(oneOf)].map((parts) => parts.map((part) => asRoot(part)));
  const parts = [own, ...all];
  const required = [
    ...parts.flatMap((part) => requiredOf(part)),
    ...choices.flatMap((each) => requiredByAll(each)),
  ];
  const properties: Record<string, unknown> = {};
  for (const part of [...choices.flat().toReversed(), ...parts.toReversed()]) {
    Object.assign(properties, part['properties']);
  }
  const needed = [...new Set(required)].filter((name) => Object.hasOwn(properties, name));
  const description = [own, ...all, ...choices.flat()].find((part) => 'description' in part)?.['description'];
  const isClosed =
    all.length + choices.flat().length === 0 && typeof own['additionalProperties'] !== 'undefined';
  return {
    type: 'object',
    ...(typeof own['title'] === 'string' && { title: own['title'] }),
    ...(typeof description === 'string' && { description }),
    properties,
    ...(needed.length > 0 && { required: needed }),
    ...(isClosed && { additionalProperties: own['additionalProperties'] }),
  };
}

function list(value: unknown): Schema[] {
  return Array.isArray(value) ? value.filter((part) => isJsonObject(part)) : [];
}

function requiredByAll(choices: readonly Schema[]): string[] {
  const [first, ...rest] = choices.map((choice) => requiredOf(choice));
  return (first ?? []).filter((name) => rest.every((names) => names.includes(name)));
}

/** Anthropic's API accepts only such names for properties of the root. */
function withValidNames(root: Schema): Omit<RepairedSchema, 'repairs'> {
  const properties = isJsonObject(root['properties']) ? root['properties'] : {};
  const names = Object.keys(properties);
  const taken = new Set(names.filter((name) => cleanPropertyName(name) === name));
  const renamed = new Map<string, string>();
  const newNames = new Map<string, string>();
  for (const name of names) {
    const clean = cleanPropertyName(name);
    if (clean !== name) {
      const free = freeName(clean, taken);
      taken.add(free);
      newNames.set(name, free);
      renamed.set(free, name);
    }
  }
  const nameOf = (name: string): string => newNames.get(name) ?? name;
  return {
    schema: {
      ...root,
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, value]) => [nameOf(name), value]),
      ),
      ...('required' in root && { required: requiredOf(root).map(nameOf) }),
    },
    renamed,
  };
}

/** The name, with a number where it is taken. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let count = 2; taken.has(free); count += 1) {
    free = `${name.slice(0, MAX_NAME - 4)}_${count}`;
  }
  return free;
}

function cleanPropertyName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_.-]/g, '_').slice(0, MAX_NAME) || '_';
}
