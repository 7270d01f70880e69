import type { ApiPropertyOptions } from '@nestjs/swagger';
import {
  ArrayMaxSize,
  IsArray,
  IsDate,
  IsEmail,
  IsIn,
  IsInstance,
  IsString,
  Matches,
  MaxLength,
} from 'class-validator';
import { isJsonObject } from '@slipway/common/json-merge.js';
import {
  because,
  composeDecorators,
  customRule,
  type DescribeProblems,
  documentedField,
  type FieldOptions,
  type FieldProblem,
  MAX_ELEMENTS,
  noCollection,
  presence,
  unlessTooMany,
} from './field.js';

/** What OpenAPI says of the form of a text that a `rule` checks; lengths in characters. */
export interface TextForm {
  pattern?: string;
  minLength?: number;
  maxLength?: number;
}

interface TextOptions extends FieldOptions {
  /** A password in OpenAPI (`format: password`, `writeOnly`). */
  secret?: boolean;
  format?: string;
  /** White space around the text does not count. */
  trim?: boolean;
  /** Most characters, unless a `rule` with a `form` limits them; a sentence of its own if the usual one does not do. */
  maxLength?: number | { value: number; expected: string };
  /** What the text must match, and the sentence for one that does not. */
  pattern?: { regex: RegExp; expected: string };
  /** A further rule: the sentence for a text that breaks it, or null. */
  rule?: (text: string) => string | null;
  /** What OpenAPI says of the form; it is `rule` that checks it. */
  form?: TextForm;
}

const NOT_TEXT: FieldProblem = { type: 'string_type', msg: 'Expected a string.' };

/** Most characters of a text that nothing else is said of. */
const MAX_TEXT = 1_024;
export const MAX_URL = 2_048;
/** Most characters of keys, tokens and the values of secrets: a file with credentials fits. */
export const MAX_SECRET = 65_536;
export const MAX_EMAIL = 320;

/** A string; nothing else is turned into one. */
export function Text(options: TextOptions): PropertyDecorator {
  const { form, pattern, rule } = options;
  const { maxLength = form?.maxLength === undefined ? MAX_TEXT : undefined } = options;
  const most = typeof maxLength === 'number' ? atMost(maxLength) : maxLength;
  return composeDecorators(
    documentedField(
      options,
      {
        type: String,
        ...form,
        ...(most && { maxLength: most.value }),
        ...(pattern && { pattern: patternText(pattern.regex, options.trim === true) }),
        ...(options.format !== undefined && { format: options.format }),
        ...(options.secret === true && { format: 'password', writeOnly: true }),
      },
      (value) => (options.trim === true && typeof value === 'string' ? value.trim() : value),
    ),
    presence(options, NOT_TEXT),
    IsString(because(NOT_TEXT)),
    ...(most ? [maxLengthRules(most)] : []),
    ...(pattern ? [Matches(pattern.regex, because({ type: 'value_error', msg: pattern.expected }))] : []),
    ...(rule ? [sentenceRule('rule', rule)] : []),
  );
}

/** White space that does not count may stand around what matches. */
function patternText({ source }: RegExp, isTrimmed: boolean): string {
  return isTrimmed ? source.replace(/^\^/, String.raw`^\s*`).replace(/\$$/, String.raw`\s*$`) : source;
}

function atMost(value: number): { value: number; expected: string } {
  return { value, expected: `Expected at most ${value} characters.` };
}

/** `MaxLength` does not count variation selectors, so a text that it admits can still be of any size. */
function maxLengthRules({ value, expected }: { value: number; expected: string }): PropertyDecorator {
  return composeDecorators(
    MaxLength(value, because({ type: 'value_error', msg: expected })),
    sentenceRule('maxSize', (text) => (text.length > value ? expected : null)),
  );
}

/** A rule for strings with a sentence of its own; `IsString` refuses other values. */
function sentenceRule(name: string, rule: (text: string) => string | null): PropertyDecorator {
  return customRule(name, (value) => {
    const sentence = typeof value === 'string' ? rule(value) : null;
    return sentence === null ? [] : [{ type: 'value_error', msg: sentence }];
  });
}

/** An email address; the domain may be a plain host name. */
export function Email(options: FieldOptions): PropertyDecorator {
  const why = because({ type: 'value_error', msg: 'Expected an email address such as ada@example.com.' });
  return composeDecorators(
    documentedField(options, { type: String, format: 'email', maxLength: MAX_EMAIL }),
    presence(options, NOT_TEXT),
    IsString(because(NOT_TEXT)),
    maxLengthRules(atMost(MAX_EMAIL)),
    IsEmail({ require_tld: false }, why),
  );
}

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

/** A UUID, with or without dashes. */
export function Identifier(options: FieldOptions): PropertyDecorator {
  const noText: FieldProblem = { type: 'uuid_type', msg: 'Expected a UUID as text.' };
  const noUuid: FieldProblem = { type: 'uuid_parsing', msg: 'Expected a UUID: 32 hexadecimal digits.' };
  return composeDecorators(
    documentedField(options, { type: String, format: 'uuid' }),
    presence(options, noText),
    IsString(because(noText)),
    Matches(UUID, because(noUuid)),
  );
}

/** A date and time as ISO 8601 text with a time zone; arrives as a `Date`. */
export function Instant(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String, format: 'date-time' }, (value) =>
      typeof value === 'string' ? (parseInstant(value) ?? value) : value,
    ),
    presence(options, noInstant),
    IsDate(because(noInstant)),
  );
}

/** The problem of a value that is not a date and time. */
function noInstant(value: unknown): FieldProblem[] {
  const type = typeof value === 'string' ? 'datetime_parsing' : 'datetime_type';
  return [{ type, msg: 'Expected a time such as 2030-01-31T12:00:00Z.' }];
}

const ISO_8601 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

function parseInstant(text: string): Date | null {
  const [matched, year, month, day] = ISO_8601.exec(text) ?? [];
  const date = new Date(matched ?? Number.NaN);
  // `Date` reads 31 February as 3 March, and an offset may lead beyond the years that ISO 8601 has four digits for.
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) <= daysInMonth && date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999
    ? date
    : null;
}

interface ChoiceOptions extends FieldOptions {
  values: readonly string[];
  /** Name of the schema in OpenAPI, where other members have the same values. */
  enumName?: string;
}

/** One of some known words. */
export function Choice(options: ChoiceOptions): PropertyDecorator {
  const { values, enumName } = options;
  const unknown: FieldProblem = { type: 'enum', msg: `Expected one of: ${values.join(', ')}.` };
  return composeDecorators(
    documentedField(options, {
      enum: [...values],
      ...(enumName === undefined ? { type: String } : { enumName }),
    }),
    presence(options, unknown),
    IsIn([...values], because(unknown)),
  );
}

/** Most words of a comma list. */
export const MAX_WORDS = 100;

interface CommaListOptions extends FieldOptions {
  values: readonly string[];
}

/** A query parameter that holds a comma list of known words; arrives as an array. */
export function CommaList(options: CommaListOptions): PropertyDecorator {
  const { values } = options;
  const noText: FieldProblem = { type: 'string_type', msg: 'Expected one comma-separated list.' };
  const unknown: FieldProblem = { type: 'enum', msg: `Expected a comma list of: ${values.join(', ')}.` };
  return composeDecorators(
    documentedField(options, { type: String, maxLength: MAX_TEXT }, (value) =>
      typeof value === 'string' && value.length <= MAX_TEXT
        ? value.split(',').map((word) => word.trim())
        : value,
    ),
    presence(options, noText),
    IsArray(because(noText)),
    ArrayMaxSize(MAX_WORDS, because({ type: 'too_long', msg: `Expected at most ${MAX_WORDS} words.` })),
    IsIn([...values], because(unknown, { each: true })),
  );
}

interface RepeatedTextOptions extends FieldOptions {
  /** How often it may be repeated. */
  most: number;
  /** What OpenAPI says of the form of each text; it is checked elsewhere. */
  form?: TextForm;
}

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array of strings. */
export function RepeatedText(options: RepeatedTextOptions): PropertyDecorator {
  const { most, form } = options;
  const noList: FieldProblem = { type: 'list_type', msg: 'Expected the parameter once for each value.' };
  return composeDecorators(
    documentedField(
      options,
      { type: 'array', items: { type: 'string', maxLength: MAX_TEXT, ...form }, maxItems: most },
      (value) => (typeof value === 'string' ? [value] : value),
    ),
    presence(options, noList),
    IsArray(because(noList)),
    IsString(because(noList, { each: true })),
    textLengths(form?.maxLength),
    ArrayMaxSize(most, because({ type: 'too_long', msg: `Expected at most ${most} values.` })),
  );
}

/** Reads a collection that is written as one text: what it stands for, or the sentence for a text that is none. */
type TextParser<Value> = (text: string) => { value: Value; problem: null } | { problem: string };

/** The collection that a text stands for; anything else, and a text that is none, stays as it is. */
function parsed<Value>(value: unknown, parse: TextParser<Value> | undefined): unknown {
  const outcome = typeof value === 'string' && value.length <= MAX_SECRET ? parse?.(value) : undefined;
  return outcome?.problem === null ? outcome.value : value;
}

/** Says of a text why it is no collection, where texts are taken at all. */
function unlessParsed(parse: TextParser<unknown> | undefined, describe: DescribeProblems): DescribeProblems {
  return (value) => {
    if (parse !== undefined && typeof value === 'string' && value.length > MAX_SECRET) {
      return [{ type: 'value_error', msg: atMost(MAX_SECRET).expected }];
    }
    const problem = typeof value === 'string' ? parse?.(value).problem : undefined;
    return typeof problem === 'string' ? [{ type: 'value_error', msg: problem }] : describe(value);
  };
}

/** The generator adds null to a type; a choice of schemas says it itself. */
function nullChoice({ nullable, nullIsAbsent }: FieldOptions): { type: 'null' }[] {
  return nullable === true || nullIsAbsent === true ? [{ type: 'null' }] : [];
}

interface TextListOptions extends FieldOptions {
  /** Most characters of each text. */
  itemLength?: number;
  /** What OpenAPI says of the list and its texts; it is checked elsewhere. */
  form?: { minItems?: number; uniqueItems?: boolean; items?: { enum: string[] } };
  /** Accepts one text for the list, and says which list it stands for. */
  fromText?: TextParser<string[]>;
  /** What OpenAPI says of such a text. */
  textForm?: TextForm;
}

/** A list of strings. */
export function TextList(options: TextListOptions): PropertyDecorator {
  const { fromText, form, itemLength = MAX_TEXT } = options;
  const items = { type: 'string' as const, maxLength: itemLength, ...form?.items };
  const noList = unlessParsed(
    fromText,
    noCollection({ type: 'list_type', msg: 'Expected a list of strings.' }),
  );
  const noTexts: DescribeProblems = (value) =>
    Array.isArray(value)
      ? value.flatMap((element, index) =>
          typeof element === 'string' ? [] : [{ ...NOT_TEXT, path: [String(index)] }],
        )
      : noList(value);
  const schema: ApiPropertyOptions = fromText
    ? {
        oneOf: [
          { type: 'array', items, maxItems: MAX_ELEMENTS },
          { type: 'string', maxLength: MAX_SECRET, ...options.textForm },
          ...nullChoice(options),
        ],
      }
    : { type: 'array', maxItems: MAX_ELEMENTS, ...form, items };
  return composeDecorators(
    documentedField(options, schema, (value) => {
      const list = parsed(value, fromText);
      return Array.isArray(list) ? unlessTooMany(list.length, () => list) : list;
    }),
    presence(options, noList),
    IsArray(because(noList)),
    IsString(because(noTexts, { each: true })),
    textLengths(itemLength),
  );
}

/** Each text of a list or a map has at most so many characters. */
function textLengths(most = MAX_TEXT): PropertyDecorator {
  return customRule('textLengths', (value) =>
    Array.isArray(value) || value instanceof Map
      ? [...value.entries()].flatMap(([key, text]: [unknown, unknown]) =>
          typeof text === 'string' && text.length > most
            ? [{ type: 'value_error', msg: atMost(most).expected, path: [String(key)] }]
            : [],
        )
      : [],
  );
}

/** What OpenAPI says of the keys of a map. */
export interface KeySchema {
  enum?: readonly string[];
  pattern?: string;
  maxLength?: number;
}

/** The OpenAPI schema of an object used as a map. `propertyNames` is of JSON Schema, so new in OpenAPI 3.1. */
export function mapSchema(values: Record<string, unknown>, keys?: KeySchema): ApiPropertyOptions {
  const map = { type: 'object' as const, additionalProperties: values, maxProperties: MAX_ELEMENTS };
  return keys ? Object.assign(map, { propertyNames: keys }) : map;
}

interface TextMapOptions extends FieldOptions {
  /** Most entries. */
  most?: number;
  /** Most characters of each value. */
  valueLength?: number;
  /** Schema of the keys in OpenAPI; it is `keyRule` that checks them. */
  keySchema?: KeySchema;
  /** The sentence for a bad key, or null. */
  keyRule: (key: string) => string | null;
  /** Accepts one text for the object, and says which entries it stands for. */
  fromText?: TextParser<ReadonlyMap<string, string>>;
  /** What OpenAPI says of such a text. */
  textForm?: TextForm;
}

/** An object whose values are strings; arrives as a `Map`. */
export function TextMap(options: TextMapOptions): PropertyDecorator {
  const { fromText, most = MAX_ELEMENTS, valueLength = MAX_TEXT } = options;
  const noMap = unlessParsed(
    fromText,
    noCollection({ type: 'dict_type', msg: 'Expected an object whose values are strings.' }),
  );
  const badEntries: DescribeProblems = (value) =>
    value instanceof Map
      ? [...value].flatMap(([key, entry]: [string, unknown]): FieldProblem[] => {
          const sentence = options.keyRule(key);
          if (sentence !== null) {
            return [{ type: 'value_error', msg: sentence, path: [key] }];
          }
          return typeof entry === 'string' ? [] : [{ ...NOT_TEXT, path: [key] }];
        })
      : noMap(value);
  const keys = options.keySchema && { propertyNames: options.keySchema };
  const values = { type: 'string', maxLength: valueLength };
  const map = Object.assign(
    { type: 'object' as const, additionalProperties: values, maxProperties: most },
    keys,
  );
  const schema: ApiPropertyOptions = fromText
    ? // Without a type, the generator would describe the class Map.
      {
        type: Object,
        oneOf: [map, { type: 'string', maxLength: MAX_SECRET, ...options.textForm }, ...nullChoice(options)],
      }
    : map;
  return composeDecorators(
    documentedField(options, schema, (given) => {
      const value = parsed(given, fromText);
      if (value instanceof Map) {
        return unlessTooMany(value.size, () => value, most);
      }
      if (!isJsonObject(value)) {
        return value;
      }
      const entries = Object.entries(value);
      return unlessTooMany(entries.length, () => new Map(entries), most);
    }),
    presence(options, noMap),
    IsInstance(Map, because(noMap)),
    IsString(because(badEntries, { each: true })),
    textLengths(valueLength),
    customRule('mapKeys', badEntries),
  );
}
