import { isDate, isIn, isString } from 'class-validator';
import { parseHexId } from '../identifiers.js';
import {
  field,
  type FieldKind,
  fieldOf,
  type FieldOptions,
  type Judge,
  listOf,
  mapOf,
  maxItems,
  must,
} from './field.js';

/** For OpenAPI only: a `rule` checks it. Lengths in characters. */
export interface TextForm {
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  format?: string;
}

/** The sentence for a text that breaks it, or null. */
type TextRule = (text: string) => string | null;

interface TextOptions extends FieldOptions {
  secret?: boolean;
  format?: string;
  trim?: boolean;
  /** By default `MAX_TEXT`, unless the `form` of a `rule` has it. */
  maxLength?: number;
  pattern?: { regex: RegExp; expected: string };
  rule?: TextRule;
  form?: TextForm;
}

export const MAX_TEXT = 1_024;
export const MAX_URL = 2_048;
/** A file with credentials fits. */
export const MAX_SECRET = 65_536;
export const MAX_EMAIL = 320;

export function Text(description: string, options: TextOptions = {}): PropertyDecorator {
  const { form, format = form?.format, pattern, rule, secret, trim = false } = options;
  const most = options.maxLength ?? (form?.maxLength === undefined ? MAX_TEXT : Infinity);
  const matches: TextRule = (text) => (pattern?.regex.test(text) === false ? pattern.expected : null);
  return field(description, options, {
    schema: {
      type: String,
      ...form,
      maxLength: options.maxLength ?? form?.maxLength ?? MAX_TEXT,
      ...(pattern && { pattern: patternText(pattern.regex, trim) }),
      ...(secret ? { format: 'password', writeOnly: true } : { format }),
    },
    coerce: (value) => (trim && isString(value) ? value.trim() : value),
    rules: {
      ...textOf(most).rules,
      ...(pattern && { matches: sentenceRule(matches) }),
      ...(rule && { rule: sentenceRule(rule) }),
    },
  });
}

/** Stored encrypted, and never shown. */
export function Secret(description: string, example: string, presence: FieldOptions): PropertyDecorator {
  return Text(description, { secret: true, example, maxLength: MAX_SECRET, ...presence });
}

export function atMost(most: number): string {
  return `Expected at most ${most} characters.`;
}

/** White space that does not count may stand around what matches. */
function patternText({ source }: RegExp, isTrimmed: boolean): string {
  return isTrimmed ? source.replace(/^\^/, String.raw`^\s*`).replace(/\$$/, String.raw`\s*$`) : source;
}

function textOf(most: number): FieldKind {
  return {
    schema: { type: 'string', maxLength: most },
    rules: {
      isString: must(isString, 'string_type', 'Expected a string.'),
      // Stock `MaxLength` does not count variation selectors, so a text that it admits can be of any size.
      maxLength: sentenceRule(({ length }) => (length > most ? atMost(most) : null)),
    },
  };
}

export function sentenceRule(rule: TextRule): Judge {
  return (value) => {
    const msg = typeof value === 'string' ? rule(value) : null;
    return msg === null ? [] : [{ type: 'value_error', msg }];
  };
}

export const Identifier = fieldOf(() => ({
  schema: { type: String, format: 'uuid' },
  rules: {
    isString: must(isString, 'uuid_type', 'Expected a UUID as text.'),
    matches: must(isUuid, 'uuid_parsing', 'Expected a UUID: 32 hexadecimal digits.'),
  },
}));

function isUuid(value: unknown): boolean {
  return isString(value) && parseHexId(value) !== null;
}

/** ISO 8601 text with a time zone; arrives as a `Date`. */
export const Instant = fieldOf(() => {
  const msg = 'Expected a time such as 2030-01-31T12:00:00Z.';
  return {
    schema: { type: String, format: 'date-time' },
    coerce: (value) => (isString(value) ? (parseInstant(value) ?? value) : value),
    rules: {
      isTime: must((value) => isDate(value) || isString(value), 'datetime_type', msg),
      isDate: must(isDate, 'datetime_parsing', msg),
    },
  };
});

const ISO_8601 = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

function parseInstant(text: string): Date | null {
  const [matched = '', day = ''] = ISO_8601.exec(text) ?? [];
  const date = new Date(matched);
  const year = date.getUTCFullYear();
  // `Date` reads 31 February as 3 March, and an offset may lead beyond the years of four digits.
  const isReal = new Date(day).toJSON()?.startsWith(day) && year >= 1 && year <= 9999;
  return isReal ? date : null;
}

interface Choices {
  values: readonly string[];
  /** Names a schema that other members share. */
  enumName?: string;
}

export const Choice = fieldOf(({ values, enumName }: Choices) => ({
  schema: { enum: [...values], ...(enumName === undefined ? { type: String } : { enumName }) },
  rules: { isIn: must((value) => isIn(value, values), 'enum', `Expected one of: ${values.join(', ')}.`) },
}));

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array. */
export const RepeatedText = fieldOf(({ most, form }: { most: number; form?: TextForm }) => {
  const items = { type: 'string', maxLength: MAX_TEXT, ...form };
  const { schema, rules } = textList({ itemLength: items.maxLength, form: { maxItems: most, items } });
  return {
    schema,
    coerce: (value) => (isString(value) ? [value] : value),
    rules: { ...rules, arrayMaxSize: maxItems(most, 'values') },
  };
});

interface TextListForm {
  itemLength?: number;
  /** For OpenAPI only. */
  form?: object;
}

export const TextList = fieldOf(textList);

export function textList({ form, itemLength = MAX_TEXT }: TextListForm): FieldKind {
  return listOf(textOf(itemLength), ' of strings', form);
}

interface TextMapForm {
  most?: number;
  valueLength?: number;
  keySchema?: TextForm;
  keyRule: TextRule;
}

export const TextMap = fieldOf(textMap);

/** An object whose values are strings. */
export function textMap({ keyRule, keySchema, most, valueLength = MAX_TEXT }: TextMapForm): FieldKind {
  const { schema, rules } = textOf(valueLength);
  const keys: Judge = (_entry, key) => sentenceRule(keyRule)(key, key);
  return mapOf({ schema, rules: { keys, ...rules } }, ' whose values are strings', keySchema, most);
}
