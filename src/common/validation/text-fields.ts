import type { ApiPropertyOptions } from '@nestjs/swagger';
import {
  composeDecorators,
  documentedField,
  type FieldOptions,
  type FieldProblem,
  fieldRule,
  isPlainObject,
  TooMany,
  unlessTooMany,
} from './field.js';

interface ChoiceOptions extends FieldOptions {
  values: readonly string[];
  /** Name of the schema in OpenAPI, where other members have the same values. */
  enumName?: string;
}

/** One of some known words. */
export function Choice(options: ChoiceOptions): PropertyDecorator {
  const { values, enumName } = options;
  return composeDecorators(
    documentedField(options, {
      enum: [...values],
      ...(enumName === undefined ? { type: String } : { enumName }),
    }),
    fieldRule('choice', options, (value) =>
      typeof value === 'string' && values.includes(value)
        ? []
        : [{ type: 'enum', msg: `Expected one of: ${values.join(', ')}.` }],
    ),
  );
}

interface CommaListOptions extends FieldOptions {
  values: readonly string[];
}

/** A query parameter that holds a comma list of known words; arrives as an array. */
export function CommaList(options: CommaListOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String }, (value) =>
      typeof value === 'string' ? value.split(',').map((word) => word.trim()) : value,
    ),
    fieldRule('commaList', options, (value) => {
      if (!Array.isArray(value)) {
        return [{ type: 'string_type', msg: 'Expected one comma-separated list.' }];
      }
      return value.every((word) => options.values.includes(String(word)))
        ? []
        : [{ type: 'enum', msg: `Expected a comma list of: ${options.values.join(', ')}.` }];
    }),
  );
}

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

/** A UUID, with or without dashes. */
export function Identifier(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String, format: 'uuid' }),
    fieldRule('identifier', options, (value) => {
      if (typeof value !== 'string') {
        return [{ type: 'uuid_type', msg: 'Expected a UUID as text.' }];
      }
      return UUID.test(value)
        ? []
        : [{ type: 'uuid_parsing', msg: 'Expected a UUID: 32 hexadecimal digits.' }];
    }),
  );
}

const ISO_8601 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** A moment as ISO 8601 text with a time zone; arrives as a `Date`. */
export function Instant(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String, format: 'date-time' }, (value) =>
      typeof value === 'string' ? (parseInstant(value) ?? value) : value,
    ),
    fieldRule('instant', options, (value) =>
      value instanceof Date
        ? []
        : [
            typeof value === 'string'
              ? { type: 'datetime_parsing', msg: 'Expected a time such as 2030-01-31T12:00:00Z.' }
              : { type: 'datetime_type', msg: 'Expected a time such as 2030-01-31T12:00:00Z.' },
          ],
    ),
  );
}

function parseInstant(text: string): Date | null {
  const [matched, year, month, day] = ISO_8601.exec(text) ?? [];
  const date = new Date(matched ?? Number.NaN);
  // `Date` reads 31 February as 3 March, and an offset may lead beyond the years that ISO 8601 has four digits for.
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) <= daysInMonth && date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999
    ? date
    : null;
}

/** What OpenAPI says of the keys of a map. */
export interface KeySchema {
  enum?: readonly string[];
  pattern?: string;
  maxLength?: number;
}

/** The OpenAPI schema of an object used as a map. `propertyNames` is of JSON Schema, so new in OpenAPI 3.1. */
export function mapSchema(values: Record<string, unknown>, keys?: KeySchema): ApiPropertyOptions {
  const map = { type: 'object' as const, additionalProperties: values };
  return keys ? Object.assign(map, { propertyNames: keys }) : map;
}

interface RepeatedTextOptions extends FieldOptions {
  /** How often it may be repeated. */
  most: number;
}

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array of strings. */
export function RepeatedText(options: RepeatedTextOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: [String], maxItems: options.most }, (value) =>
      typeof value === 'string' ? [value] : value,
    ),
    fieldRule('repeatedText', options, (value) => {
      if (!Array.isArray(value) || !value.every((element) => typeof element === 'string')) {
        return [{ type: 'list_type', msg: 'Expected the parameter once for each value.' }];
      }
      return value.length > options.most
        ? [{ type: 'too_long', msg: `Expected at most ${options.most} values.` }]
        : [];
    }),
  );
}

/** The form of a text in the words of OpenAPI; lengths in characters. */
interface TextForm {
  pattern?: string;
  minLength?: number;
  maxLength?: number;
}

interface TextOptions extends FieldOptions {
  /** A password in OpenAPI (`format: password`, `writeOnly`). */
  secret?: boolean;
  format?: string;
  /** What OpenAPI says of the form; it is `rule` that checks it. */
  form?: TextForm;
  /** White space around the text does not count. */
  trim?: boolean;
  /** A further rule: the sentence to answer with, or null. */
  rule?: (text: string) => string | null;
}

/** A string; nothing else is turned into one. */
export function Text(options: TextOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(
      options,
      {
        type: String,
        ...options.form,
        ...(options.format !== undefined && { format: options.format }),
        ...(options.secret === true && { format: 'password', writeOnly: true }),
      },
      (value) => (options.trim === true && typeof value === 'string' ? value.trim() : value),
    ),
    fieldRule('text', options, (value) => textProblems(value, options.rule)),
  );
}

/** The problems of a value that should be a string. */
function textProblems(value: unknown, rule?: (text: string) => string | null): FieldProblem[] {
  if (typeof value !== 'string') {
    return [{ type: 'string_type', msg: 'Expected a string.' }];
  }
  const sentence = rule?.(value) ?? null;
  return sentence === null ? [] : [{ type: 'value_error', msg: sentence }];
}

/** A list of strings. */
export function TextList(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: [String] }, (value) =>
      Array.isArray(value) ? unlessTooMany(value.length, () => value) : value,
    ),
    fieldRule('textList', options, (value) => {
      if (value instanceof TooMany) {
        return [value.problem];
      }
      return Array.isArray(value)
        ? value.flatMap((element, index) =>
            textProblems(element).map((problem) => ({ ...problem, path: [String(index)] })),
          )
        : [{ type: 'list_type', msg: 'Expected a list of strings.' }];
    }),
  );
}

interface TextMapOptions extends FieldOptions {
  /** Schema of the keys in OpenAPI; it is `keyRule` that checks them. */
  keySchema?: KeySchema;
  /** The sentence for a bad key, or null. */
  keyRule: (key: string) => string | null;
}

/** An object whose values are strings; arrives as a `Map`. */
export function TextMap(options: TextMapOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, mapSchema({ type: 'string' }, options.keySchema), (value) => {
      if (!isPlainObject(value)) {
        return value;
      }
      const entries = Object.entries(value);
      return unlessTooMany(entries.length, () => new Map(entries));
    }),
    fieldRule('textMap', options, (value) => {
      if (value instanceof TooMany) {
        return [value.problem];
      }
      if (!(value instanceof Map)) {
        return [{ type: 'dict_type', msg: 'Expected an object whose values are strings.' }];
      }
      return [...value].flatMap(([key, entry]: [string, unknown]) => {
        const sentence = options.keyRule(key);
        return sentence === null
          ? textProblems(entry).map((problem) => ({ ...problem, path: [key] }))
          : [{ type: 'value_error', msg: sentence, path: [key] }];
      });
    }),
  );
}
