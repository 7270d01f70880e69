import { applyDecorators } from '@nestjs/common';
import type { ApiPropertyOptions } from '@nestjs/swagger';
import { IsArray, IsDate, isEmail, IsIn, IsInstance, IsString, Matches, MaxLength } from 'class-validator';
import {
  because,
  customRule,
  type DescribeProblems,
  elementProblems,
  field,
  type FieldOptions,
  type FieldProblem,
  MAX_ELEMENTS,
  maxEntries,
  maxItems,
  toList,
  toMap,
} from './field.js';

/** For OpenAPI only: a `rule` checks it. Lengths in characters. */
export interface TextForm {
  pattern?: string;
  minLength?: number;
  maxLength?: number;
}

interface TextOptions extends FieldOptions {
  secret?: boolean;
  format?: string;
  trim?: boolean;
  /** In characters; without effect beside a `rule` with a `form`. */
  maxLength?: number | { value: number; expected: string };
  pattern?: { regex: RegExp; expected: string };
  /** The sentence for a text that breaks it, or null. */
  rule?: (text: string) => string | null;
  form?: TextForm;
}

const NOT_TEXT: FieldProblem = { type: 'string_type', msg: 'Expected a string.' };

const MAX_TEXT = 1_024;
export const MAX_URL = 2_048;
/** Characters: a file with credentials fits. */
export const MAX_SECRET = 65_536;
export const MAX_EMAIL = 320;

export function Text(options: TextOptions): PropertyDecorator {
  const { form, pattern, rule, trim = false } = options;
  const { maxLength = form?.maxLength === undefined ? MAX_TEXT : undefined } = options;
  const most = typeof maxLength === 'number' ? atMost(maxLength) : maxLength;
  return field({
    options,
    schema: {
      type: String,
      ...form,
      ...(most && { maxLength: most.value }),
      ...(pattern && { pattern: patternText(pattern.regex, trim) }),
      ...(options.format !== undefined && { format: options.format }),
      ...(options.secret === true && { format: 'password', writeOnly: true }),
    },
    coerce: (value) => (trim && typeof value === 'string' ? value.trim() : value),
    is: IsString,
    otherwise: NOT_TEXT,
    rules: [
      ...(most ? [maxLengthRules(most)] : []),
      ...(pattern ? [Matches(pattern.regex, because(valueError(pattern.expected)))] : []),
      ...(rule ? [sentenceRule('rule', rule)] : []),
    ],
  });
}

function valueError(msg: string): FieldProblem {
  return { type: 'value_error', msg };
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
  return applyDecorators(
    MaxLength(value, because(valueError(expected))),
    sentenceRule('maxSize', (text) => (text.length > value ? expected : null)),
  );
}

/** Only for strings; `IsString` refuses other values. */
function sentenceRule(name: string, rule: (text: string) => string | null): PropertyDecorator {
  return customRule(name, (value) => {
    const sentence = typeof value === 'string' ? rule(value) : null;
    return sentence === null ? [] : [valueError(sentence)];
  });
}

/** The domain may be a plain host name. */
export function Email(options: FieldOptions): PropertyDecorator {
  return Text({
    ...options,
    format: 'email',
    maxLength: MAX_EMAIL,
    rule: (text) =>
      isEmail(text, { require_tld: false }) ? null : 'Expected an email address such as ada@example.com.',
  });
}

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

export function Identifier(options: FieldOptions): PropertyDecorator {
  const noUuid: FieldProblem = { type: 'uuid_parsing', msg: 'Expected a UUID: 32 hexadecimal digits.' };
  return field({
    options,
    schema: { type: String, format: 'uuid' },
    is: IsString,
    otherwise: { type: 'uuid_type', msg: 'Expected a UUID as text.' },
    rules: [Matches(UUID, because(noUuid))],
  });
}

/** ISO 8601 text with a time zone; arrives as a `Date`. */
export function Instant(options: FieldOptions): PropertyDecorator {
  return field({
    options,
    schema: { type: String, format: 'date-time' },
    coerce: (value) => (typeof value === 'string' ? (parseInstant(value) ?? value) : value),
    is: IsDate,
    otherwise: (value) => {
      const type = typeof value === 'string' ? 'datetime_parsing' : 'datetime_type';
      return [{ type, msg: 'Expected a time such as 2030-01-31T12:00:00Z.' }];
    },
  });
}

const ISO_8601 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

function parseInstant(text: string): Date | null {
  const [matched, year, month, day] = ISO_8601.exec(text) ?? [];
  const date = new Date(matched ?? Number.NaN);
  // `Date` reads 31 February as 3 March, and an offset may lead beyond the years of four digits.
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) <= daysInMonth && date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999
    ? date
    : null;
}

interface ChoiceOptions extends FieldOptions {
  values: readonly string[];
  /** Names a schema that other members share. */
  enumName?: string;
}

export function Choice(options: ChoiceOptions): PropertyDecorator {
  const { values, enumName } = options;
  return field({
    options,
    schema: { enum: [...values], ...(enumName === undefined ? { type: String } : { enumName }) },
    is: (why) => IsIn([...values], why),
    otherwise: { type: 'enum', msg: `Expected one of: ${values.join(', ')}.` },
  });
}

export const MAX_WORDS = 100;

interface CommaListOptions extends FieldOptions {
  values: readonly string[];
}

/** A query parameter with a comma list of known words; arrives as an array. */
export function CommaList(options: CommaListOptions): PropertyDecorator {
  const { values } = options;
  const unknown: FieldProblem = { type: 'enum', msg: `Expected a comma list of: ${values.join(', ')}.` };
  return field({
    options,
    schema: { type: String, maxLength: MAX_TEXT },
    coerce: (value) =>
      typeof value === 'string' && value.length <= MAX_TEXT
        ? value.split(',').map((word) => word.trim())
        : value,
    is: IsArray,
    otherwise: { type: 'string_type', msg: 'Expected one comma-separated list.' },
    rules: [maxItems(MAX_WORDS, 'words'), IsIn([...values], because(unknown, { each: true }))],
  });
}

interface RepeatedTextOptions extends FieldOptions {
  most: number;
  form?: TextForm;
}

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array. */
export function RepeatedText(options: RepeatedTextOptions): PropertyDecorator {
  const { most, form } = options;
  const noList: FieldProblem = { type: 'list_type', msg: 'Expected the parameter once for each value.' };
  return field({
    options,
    schema: { type: 'array', items: { type: 'string', maxLength: MAX_TEXT, ...form }, maxItems: most },
    coerce: (value) => (typeof value === 'string' ? [value] : value),
    is: IsArray,
    otherwise: noList,
    rules: [
      IsString(because(noList, { each: true })),
      textLengths(form?.maxLength),
      maxItems(most, 'values'),
    ],
  });
}

function textLengths(most = MAX_TEXT): PropertyDecorator {
  const tooLong = valueError(atMost(most).expected);
  return customRule(
    'textLengths',
    elementProblems((text) => (typeof text === 'string' && text.length > most ? [tooLong] : [])),
  );
}

/** Reads a collection that is written as one text. */
type TextParser<Value> = (text: string) => { value: Value; problem: null } | { problem: string };

interface TextCollectionOptions<Value> extends FieldOptions {
  /** Accepts one text for the collection. */
  fromText?: TextParser<Value>;
  textForm?: TextForm;
}

function parsed(value: unknown, parse: TextParser<unknown> | undefined): unknown {
  const outcome = typeof value === 'string' && value.length <= MAX_SECRET ? parse?.(value) : undefined;
  return outcome?.problem === null ? outcome.value : value;
}

function unlessParsed(parse: TextParser<unknown> | undefined, otherwise: FieldProblem): DescribeProblems {
  return (value) => {
    if (parse === undefined || typeof value !== 'string') {
      return [otherwise];
    }
    const problem = value.length > MAX_SECRET ? atMost(MAX_SECRET).expected : parse(value).problem;
    return [problem === null ? otherwise : valueError(problem)];
  };
}

/** Null is one of the choices, as the generator adds none. */
function choiceSchema(
  collection: object,
  { textForm, nullable, nullIsAbsent }: TextCollectionOptions<unknown>,
): Pick<ApiPropertyOptions, 'oneOf'> {
  const oneText = { type: 'string', maxLength: MAX_SECRET, ...textForm };
  const isNullable = nullable === true || nullIsAbsent === true;
  return { oneOf: [collection, oneText, ...(isNullable ? [{ type: 'null' }] : [])] };
}

interface TextListOptions extends TextCollectionOptions<string[]> {
  itemLength?: number;
  form?: { minItems?: number; uniqueItems?: boolean; items?: { enum: string[] } };
}

export function TextList(options: TextListOptions): PropertyDecorator {
  const { fromText, form, itemLength = MAX_TEXT } = options;
  const items = { type: 'string' as const, maxLength: itemLength, ...form?.items };
  const list = { type: 'array' as const, maxItems: MAX_ELEMENTS, ...form, items };
  const noTexts = elementProblems((element) => (typeof element === 'string' ? [] : [NOT_TEXT]));
  return field({
    options,
    schema: fromText ? choiceSchema(list, options) : list,
    coerce: (value) => toList(parsed(value, fromText)),
    is: IsArray,
    otherwise: unlessParsed(fromText, { type: 'list_type', msg: 'Expected a list of strings.' }),
    rules: [maxItems(), IsString(because(noTexts, { each: true })), textLengths(itemLength)],
  });
}

export interface KeySchema {
  enum?: readonly string[];
  pattern?: string;
  maxLength?: number;
}

/** `propertyNames` is JSON Schema, so new in OpenAPI 3.1. */
export function mapSchema(
  values: Record<string, unknown>,
  keys?: KeySchema,
  most = MAX_ELEMENTS,
): ApiPropertyOptions {
  const map = { type: 'object' as const, additionalProperties: values, maxProperties: most };
  return keys ? Object.assign(map, { propertyNames: keys }) : map;
}

interface TextMapOptions extends TextCollectionOptions<ReadonlyMap<string, string>> {
  most?: number;
  valueLength?: number;
  /** For OpenAPI only; `keyRule` checks the keys. */
  keySchema?: KeySchema;
  keyRule: (key: string) => string | null;
}

/** An object whose values are strings; arrives as a `Map`. */
export function TextMap(options: TextMapOptions): PropertyDecorator {
  const { fromText, keyRule, most = MAX_ELEMENTS, valueLength = MAX_TEXT } = options;
  const schema = mapSchema({ type: 'string', maxLength: valueLength }, options.keySchema, most);
  const noMap: FieldProblem = { type: 'dict_type', msg: 'Expected an object whose values are strings.' };
  const badEntries = elementProblems((entry, key) => {
    const sentence = keyRule(key);
    if (sentence !== null) {
      return [valueError(sentence)];
    }
    return typeof entry === 'string' ? [] : [NOT_TEXT];
  });
  return field({
    options,
    // Without a type, the generator would describe the class Map.
    schema: fromText ? { type: Object, ...choiceSchema(schema, options) } : schema,
    coerce: (value) => toMap(parsed(value, fromText)),
    is: (why) => IsInstance(Map, why),
    otherwise: unlessParsed(fromText, noMap),
    rules: [
      maxEntries(most),
      IsString(because(badEntries, { each: true })),
      textLengths(valueLength),
      customRule('mapKeys', badEntries),
    ],
  });
}
