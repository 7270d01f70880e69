import type { ApiPropertyOptions } from '@nestjs/swagger';
import { IsArray, IsDate, IsIn, IsInstance, IsString, Matches, MaxLength } from 'class-validator';
import {
  because,
  customRule,
  elementProblems,
  field,
  type FieldDefinition,
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

export const MAX_TEXT = 1_024;
export const MAX_URL = 2_048;
/** Characters: a file with credentials fits. */
export const MAX_SECRET = 65_536;
export const MAX_EMAIL = 320;

export function Text(description: string, options: TextOptions = {}): PropertyDecorator {
  const { form, pattern, rule, trim = false, format } = options;
  const { maxLength = form?.maxLength === undefined ? MAX_TEXT : undefined } = options;
  const most = typeof maxLength === 'number' ? { value: maxLength, expected: atMost(maxLength) } : maxLength;
  return field({
    description,
    options,
    schema: {
      type: String,
      ...form,
      ...(most && { maxLength: most.value }),
      ...(pattern && { pattern: patternText(pattern.regex, trim) }),
      ...(format !== undefined && { format }),
      ...(options.secret === true && { format: 'password', writeOnly: true }),
    },
    coerce: (value) => (trim && typeof value === 'string' ? value.trim() : value),
    is: IsString,
    otherwise: NOT_TEXT,
    rules: [
      // `MaxLength` does not count variation selectors, so a text that it admits can still be of any size.
      ...(most ? [MaxLength(most.value, because(valueError(most.expected)))] : []),
      ...(most ? [sentenceRule('maxSize', (text) => (text.length > most.value ? most.expected : null))] : []),
      ...(pattern ? [Matches(pattern.regex, because(valueError(pattern.expected)))] : []),
      ...(rule ? [sentenceRule('rule', rule)] : []),
    ],
  });
}

/** Stored encrypted, and never shown. */
export function Secret(description: string, example: string, presence: FieldOptions = {}): PropertyDecorator {
  return Text(description, { secret: true, example, maxLength: MAX_SECRET, ...presence });
}

export function valueError(msg: string): FieldProblem {
  return { type: 'value_error', msg };
}

/** White space that does not count may stand around what matches. */
function patternText({ source }: RegExp, isTrimmed: boolean): string {
  return isTrimmed ? source.replace(/^\^/, String.raw`^\s*`).replace(/\$$/, String.raw`\s*$`) : source;
}

export function atMost(most: number): string {
  return `Expected at most ${most} characters.`;
}

/** Only for strings; `IsString` refuses other values. */
function sentenceRule(name: string, rule: (text: string) => string | null): PropertyDecorator {
  return customRule(name, (value) => {
    const sentence = typeof value === 'string' ? rule(value) : null;
    return sentence === null ? [] : [valueError(sentence)];
  });
}

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

export function Identifier(description: string, options: FieldOptions = {}): PropertyDecorator {
  const noUuid: FieldProblem = { type: 'uuid_parsing', msg: 'Expected a UUID: 32 hexadecimal digits.' };
  return field({
    description,
    options,
    schema: { type: String, format: 'uuid' },
    is: IsString,
    otherwise: { type: 'uuid_type', msg: 'Expected a UUID as text.' },
    rules: [Matches(UUID, because(noUuid))],
  });
}

/** ISO 8601 text with a time zone; arrives as a `Date`. */
export function Instant(description: string, options: FieldOptions = {}): PropertyDecorator {
  return field({
    description,
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
  const isReal = Number(day) <= daysInMonth && date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999;
  return isReal ? date : null;
}

interface ChoiceOptions extends FieldOptions {
  values: readonly string[];
  /** Names a schema that other members share. */
  enumName?: string;
}

export function Choice(
  description: string,
  { values, enumName, ...options }: ChoiceOptions,
): PropertyDecorator {
  return field({
    description,
    options,
    schema: { enum: [...values], ...(enumName === undefined ? { type: String } : { enumName }) },
    is: (why) => IsIn([...values], why),
    otherwise: { type: 'enum', msg: `Expected one of: ${values.join(', ')}.` },
  });
}

interface RepeatedTextOptions extends FieldOptions {
  most: number;
  form?: TextForm;
}

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array. */
export function RepeatedText(
  description: string,
  { most, form, ...options }: RepeatedTextOptions,
): PropertyDecorator {
  const noList: FieldProblem = { type: 'list_type', msg: 'Expected the parameter once for each value.' };
  return field({
    description,
    options,
    schema: { type: 'array', items: { type: 'string', maxLength: MAX_TEXT, ...form }, maxItems: most },
    coerce: (value) => (typeof value === 'string' ? [value] : value),
    is: IsArray,
    otherwise: noList,
    rules: [
      IsString(because(noList, { each: true })),
      customRule('texts', elementProblems(textProblems(form?.maxLength))),
      maxItems(most, 'values'),
    ],
  });
}

function textProblems(most = MAX_TEXT): (text: unknown) => FieldProblem[] {
  return (text) => {
    if (typeof text !== 'string') {
      return [NOT_TEXT];
    }
    return text.length > most ? [valueError(atMost(most))] : [];
  };
}

interface TextListOptions extends FieldOptions {
  itemLength?: number;
  form?: { minItems?: number; uniqueItems?: boolean; items?: { enum: string[] } };
}

export function textList(
  description: string,
  { form, itemLength = MAX_TEXT, ...options }: TextListOptions = {},
): FieldDefinition {
  const items = { type: 'string' as const, maxLength: itemLength, ...form?.items };
  return {
    description,
    options,
    schema: { type: 'array', maxItems: MAX_ELEMENTS, ...form, items },
    coerce: toList,
    is: IsArray,
    otherwise: { type: 'list_type', msg: 'Expected a list of strings.' },
    rules: [maxItems(), customRule('texts', elementProblems(textProblems(itemLength)))],
  };
}

export function TextList(...given: Parameters<typeof textList>): PropertyDecorator {
  return field(textList(...given));
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

interface TextMapOptions extends FieldOptions {
  most?: number;
  valueLength?: number;
  /** For OpenAPI only; `keyRule` checks the keys. */
  keySchema?: KeySchema;
  keyRule: (key: string) => string | null;
}

/** An object whose values are strings; arrives as a `Map`. */
export function textMap(
  description: string,
  { keyRule, keySchema, most, valueLength = MAX_TEXT, ...options }: TextMapOptions,
): FieldDefinition {
  const badEntries = elementProblems((entry, key) => {
    const sentence = keyRule(key);
    return sentence === null ? textProblems(valueLength)(entry) : [valueError(sentence)];
  });
  return {
    description,
    options,
    schema: mapSchema({ type: 'string', maxLength: valueLength }, keySchema, most),
    coerce: toMap,
    is: (why) => IsInstance(Map, why),
    otherwise: { type: 'dict_type', msg: 'Expected an object whose values are strings.' },
    rules: [maxEntries(most), customRule('mapEntries', badEntries)],
  };
}

export function TextMap(...given: Parameters<typeof textMap>): PropertyDecorator {
  return field(textMap(...given));
}
