import { IsArray, IsDate, IsIn, IsString, Matches, MaxLength } from 'class-validator';
import {
  because,
  customRule,
  elementProblems,
  field,
  type FieldKind,
  type FieldOptions,
  type FieldProblem,
  type KeySchema,
  listOf,
  mapOf,
  maxItems,
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
  /** In characters; by default `MAX_TEXT`, unless the `form` of a `rule` has it. */
  maxLength?: number;
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
  const { form, format, pattern, rule, secret, trim = false } = options;
  const most = options.maxLength ?? (form?.maxLength === undefined ? MAX_TEXT : Infinity);
  return field(description, options, {
    schema: {
      type: String,
      ...form,
      ...(most !== Infinity && { maxLength: most }),
      ...(pattern && { pattern: patternText(pattern.regex, trim) }),
      ...(format !== undefined && { format }),
      ...(secret === true && { format: 'password', writeOnly: true }),
    },
    coerce: (value) => (trim && typeof value === 'string' ? value.trim() : value),
    is: IsString,
    otherwise: NOT_TEXT,
    rules: [
      ...(most === Infinity ? [] : [MaxLength(most, because(valueError(atMost(most))))]),
      // `MaxLength` does not count variation selectors, so a text that it admits can still be of any size.
      sentenceRule('maxSize', (text) => (text.length > most ? atMost(most) : null)),
      ...(pattern ? [Matches(pattern.regex, because(valueError(pattern.expected)))] : []),
      ...(rule ? [sentenceRule('rule', rule)] : []),
    ],
  });
}

/** Stored encrypted, and never shown. */
export function Secret(description: string, example: string, presence: FieldOptions): PropertyDecorator {
  return Text(description, { secret: true, example, maxLength: MAX_SECRET, ...presence });
}

export function valueError(msg: string): FieldProblem {
  return { type: 'value_error', msg };
}

export function atMost(most: number): string {
  return `Expected at most ${most} characters.`;
}

/** White space that does not count may stand around what matches. */
function patternText({ source }: RegExp, isTrimmed: boolean): string {
  return isTrimmed ? source.replace(/^\^/, String.raw`^\s*`).replace(/\$$/, String.raw`\s*$`) : source;
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
  return field(description, options, {
    schema: { type: String, format: 'uuid' },
    is: IsString,
    otherwise: { type: 'uuid_type', msg: 'Expected a UUID as text.' },
    rules: [Matches(UUID, because(noUuid))],
  });
}

/** ISO 8601 text with a time zone; arrives as a `Date`. */
export function Instant(description: string, options: FieldOptions = {}): PropertyDecorator {
  return field(description, options, {
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

/** @param options `enumName` names a schema that other members share */
export function Choice(
  description: string,
  { values, enumName, ...options }: FieldOptions & { values: readonly string[]; enumName?: string },
): PropertyDecorator {
  return field(description, options, {
    schema: { enum: [...values], ...(enumName === undefined ? { type: String } : { enumName }) },
    is: (why) => IsIn([...values], why),
    otherwise: { type: 'enum', msg: `Expected one of: ${values.join(', ')}.` },
  });
}

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array. */
export function RepeatedText(
  description: string,
  { most, form, ...options }: FieldOptions & { most: number; form?: TextForm },
): PropertyDecorator {
  const noList: FieldProblem = { type: 'list_type', msg: 'Expected the parameter once for each value.' };
  return field(description, options, {
    schema: { type: 'array', items: { type: 'string', maxLength: MAX_TEXT, ...form }, maxItems: most },
    coerce: (value) => (typeof value === 'string' ? [value] : value),
    is: IsArray,
    otherwise: noList,
    rules: [
      IsString(because(noList, { each: true })),
      customRule(
        'texts',
        elementProblems((text) => textProblems(text, form?.maxLength)),
      ),
      maxItems(most, 'values'),
    ],
  });
}

function textProblems(text: unknown, most = MAX_TEXT): FieldProblem[] {
  if (typeof text !== 'string') {
    return [NOT_TEXT];
  }
  return text.length > most ? [valueError(atMost(most))] : [];
}

interface TextListForm {
  itemLength?: number;
  form?: { minItems?: number; uniqueItems?: boolean; items?: { enum: string[] } | { $ref: string } };
}

export function textList({ form, itemLength = MAX_TEXT }: TextListForm): FieldKind {
  const { schema, ...list } = listOf({
    schema:
      form?.items && '$ref' in form.items
        ? form.items
        : { type: 'string', maxLength: itemLength, ...form?.items },
    noun: 'strings',
    judge: (text) => textProblems(text, itemLength),
  });
  return { ...list, schema: Object.assign({}, form, schema) };
}

export function TextList(
  description: string,
  { form, itemLength, ...options }: FieldOptions & TextListForm = {},
): PropertyDecorator {
  return field(description, options, textList({ form, itemLength }));
}

interface TextMapForm {
  most?: number;
  valueLength?: number;
  keySchema?: KeySchema;
  keyRule: (key: string) => string | null;
}

/** An object whose values are strings. */
export function textMap({ keyRule, keySchema, most, valueLength = MAX_TEXT }: TextMapForm): FieldKind {
  return mapOf({
    schema: { type: 'string', maxLength: valueLength },
    keySchema,
    most,
    noun: ' whose values are strings',
    judge: (entry, key) => {
      const sentence = keyRule(key);
      return sentence === null ? textProblems(entry, valueLength) : [valueError(sentence)];
    },
  });
}

export function TextMap(
  description: string,
  { keyRule, keySchema, most, valueLength, ...options }: FieldOptions & TextMapForm,
): PropertyDecorator {
  return field(description, options, textMap({ keyRule, keySchema, most, valueLength }));
}
