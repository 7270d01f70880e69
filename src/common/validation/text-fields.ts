import { isDate, isIn, isString } from 'class-validator';
import {
  field,
  type FieldKind,
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
  /** In characters; by default `MAX_TEXT`, unless the `form` of a `rule` has it. */
  maxLength?: number;
  pattern?: { regex: RegExp; expected: string };
  rule?: TextRule;
  form?: TextForm;
}

export const MAX_TEXT = 1_024;
export const MAX_URL = 2_048;
/** Characters: a file with credentials fits. */
export const MAX_SECRET = 65_536;
export const MAX_EMAIL = 320;

export function Text(description: string, options: TextOptions = {}): PropertyDecorator {
  const { form, format, pattern, rule, secret, trim = false } = options;
  return field(description, options, {
    schema: {
      type: String,
      ...form,
      maxLength: options.maxLength ?? form?.maxLength ?? MAX_TEXT,
      ...(pattern && { pattern: patternText(pattern.regex, trim) }),
      ...(format !== undefined && { format }),
      ...(secret === true && { format: 'password', writeOnly: true }),
    },
    coerce: (value) => (trim && typeof value === 'string' ? value.trim() : value),
    rules: {
      ...textOf(options.maxLength ?? (form?.maxLength === undefined ? MAX_TEXT : Infinity)).rules,
      ...(pattern && {
        matches: sentenceRule((given) => (pattern.regex.test(given) ? null : pattern.expected)),
      }),
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
      maxLength: sentenceRule((given) => (given.length > most ? atMost(most) : null)),
    },
  };
}

export function sentenceRule(rule: TextRule): Judge {
  return (value) => {
    const sentence = typeof value === 'string' ? rule(value) : null;
    return sentence === null ? [] : [{ type: 'value_error', msg: sentence }];
  };
}

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

export function Identifier(description: string, options: FieldOptions): PropertyDecorator {
  return field(description, options, {
    schema: { type: String, format: 'uuid' },
    rules: {
      isString: must(isString, 'uuid_type', 'Expected a UUID as text.'),
      matches: must(
        (value) => UUID.test(String(value)),
        'uuid_parsing',
        'Expected a UUID: 32 hexadecimal digits.',
      ),
    },
  });
}

/** ISO 8601 text with a time zone; arrives as a `Date`. */
export function Instant(description: string, options: FieldOptions): PropertyDecorator {
  const msg = 'Expected a time such as 2030-01-31T12:00:00Z.';
  return field(description, options, {
    schema: { type: String, format: 'date-time' },
    coerce: (value) => (isString(value) ? (parseInstant(value) ?? value) : value),
    rules: {
      isTime: must((value) => isDate(value) || isString(value), 'datetime_type', msg),
      isDate: must(isDate, 'datetime_parsing', msg),
    },
  });
}

const ISO_8601 = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

function parseInstant(text: string): Date | null {
  const [matched = '', day = ''] = ISO_8601.exec(text) ?? [];
  const date = new Date(matched);
  const year = date.getUTCFullYear();
  // `Date` reads 31 February as 3 March, and an offset may lead beyond the years of four digits.
  const isReal = new Date(day).toJSON()?.startsWith(day) && year >= 1 && year <= 9999;
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
  return field(description, options, {
    schema: { enum: [...values], ...(enumName === undefined ? { type: String } : { enumName }) },
    rules: { isIn: must((value) => isIn(value, values), 'enum', `Expected one of: ${values.join(', ')}.`) },
  });
}

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array. */
export function RepeatedText(
  description: string,
  { most, form, ...options }: FieldOptions & { most: number; form?: TextForm },
): PropertyDecorator {
  const items = { type: 'string', maxLength: MAX_TEXT, ...form };
  const { schema, rules } = textList({ itemLength: items.maxLength, form: { maxItems: most, items } });
  return field(description, options, {
    schema,
    coerce: (value) => (isString(value) ? [value] : value),
    rules: { ...rules, arrayMaxSize: maxItems(most, 'values') },
  });
}

interface TextListForm {
  itemLength?: number;
  /** For OpenAPI only. */
  form?: object;
}

export function textList({ form, itemLength = MAX_TEXT }: TextListForm): FieldKind {
  return listOf(textOf(itemLength), ' of strings', form);
}

export function TextList(description: string, options: FieldOptions & TextListForm): PropertyDecorator {
  return field(description, options, textList(options));
}

interface TextMapForm {
  most?: number;
  valueLength?: number;
  keySchema?: TextForm;
  keyRule: TextRule;
}

/** An object whose values are strings. */
export function textMap({ keyRule, keySchema, most, valueLength = MAX_TEXT }: TextMapForm): FieldKind {
  const { schema, rules } = textOf(valueLength);
  const keys: Judge = (_entry, key) => sentenceRule(keyRule)(key, key);
  return mapOf({ schema, rules: { keys, ...rules } }, ' whose values are strings', keySchema, most);
}

export function TextMap(description: string, options: FieldOptions & TextMapForm): PropertyDecorator {
  return field(description, options, textMap(options));
}
