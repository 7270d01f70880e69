import { getSchemaPath } from '@nestjs/swagger';
import { isBoolean, isDate, isIn, isInt, isObject, isString, max, min, validateSync } from 'class-validator';
import { isJsonObject } from '@slipway/common/json-access.js';
import { toInstant } from '@slipway/common/clock.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import {
  type DtoClass,
  type FieldKind,
  fieldOf,
  type FieldOptions,
  type FieldProblem,
  type Form,
  type Judge,
  listOf,
  type MapForm,
  mapOf,
  MAX_ELEMENTS,
  maxItems,
  must,
  fieldProblems,
  type Rules,
  toDto,
} from './field.js';
import { unknownMember } from './unknown-members.js';

/** The sentence for a text that breaks it, or null. */
type TextRule = (text: string) => string | null;

interface TextOptions {
  secret?: boolean;
  trim?: boolean;
  /** `MAX_TEXT` by default, unless the `form` of a `rule` has its own. */
  maxLength?: number;
  /** Documented as it is, so it has the white space that `trim` takes off. */
  pattern?: { regex: RegExp; expected: string };
  rule?: TextRule;
  form?: Form;
}

export const MAX_TEXT = 1_024;
export const MAX_URL = 2_048;
/** A file with credentials fits. */
export const MAX_SECRET = 65_536;
export const MAX_EMAIL = 320;

export const Text = fieldOf(({ form, maxLength, pattern, rule, secret, trim }: TextOptions) => {
  const most = maxLength ?? (form?.maxLength ? Infinity : MAX_TEXT);
  const match = pattern && ((text: string) => (pattern.regex.test(text) ? null : pattern.expected));
  return {
    schema: {
      type: String,
      maxLength: MAX_TEXT,
      pattern: pattern?.regex.source,
      ...form,
      ...(maxLength && { maxLength }),
      ...(secret && { format: 'password', writeOnly: true }),
    },
    coerce: (value) => (trim && isString(value) ? value.trim() : value),
    rules: {
      ...textOf(most).rules,
      ...(match && { matches: sentenceRule(match, most) }),
      ...(rule && { rule: sentenceRule(rule, most) }),
    },
  };
});

/** Stored encrypted, and never shown. */
export const Secret = (
  description: string,
  example: string,
  options: FieldOptions & Pick<TextOptions, 'trim'>,
): PropertyDecorator => Text(description, { secret: true, example, maxLength: MAX_SECRET, ...options });

function textOf(most: number): FieldKind {
  const tooLong = `Expected at most ${most} characters.`;
  return {
    schema: { type: 'string', maxLength: most },
    rules: {
      isString: must(isString, 'string_type', 'Expected a string.'),
      // Stock `MaxLength` does not count variation selectors, so a text that it admits can be of any size.
      maxLength: sentenceRule(({ length }) => (length > most ? tooLong : null)),
    },
  };
}

/** @param most of a longer text the rule is not asked, as what it costs may grow faster than the text */
export function sentenceRule(rule: TextRule, most = Infinity): Judge {
  return (value) => {
    const msg = isString(value) && value.length <= most ? rule(value) : null;
    return msg === null ? [] : [{ type: 'value_error', msg }];
  };
}

const isUuid = (value: unknown): boolean => isString(value) && parseHexId(value) !== null;

/** Arrives in PostgreSQL's notation, so that it can be compared with stored ids. */
export const Identifier = fieldOf(() => ({
  schema: { type: String, format: 'uuid' },
  coerce: (value) => (isString(value) ? (parseHexId(value) ?? value) : value),
  rules: {
    isString: must(isString, 'uuid_type', 'Expected a UUID as text.'),
    matches: must(isUuid, 'uuid_parsing', 'Expected a UUID: 32 hexadecimal digits.'),
  },
}));

const EXPECTED_TIME = 'Expected a time such as 2030-01-31T12:00:00Z.';

/** A moment as programs write it: a time without a zone is UTC. Arrives as a `Date`. */
export const Instant = fieldOf(() => ({
  schema: { type: String, format: 'date-time' },
  coerce: (value) => {
    const instant = isString(value) ? toInstant(value) : null;
    return instant === null ? value : new Date(instant);
  },
  rules: {
    isTime: must((value) => isDate(value) || isString(value), 'datetime_type', EXPECTED_TIME),
    isDate: must(isDate, 'datetime_parsing', EXPECTED_TIME),
  },
}));

/** @param enumName names a schema that other members share */
const choice = ({ values, enumName }: { values: readonly string[]; enumName?: string }): FieldKind => ({
  schema: { enum: [...values], ...(enumName === undefined ? { type: 'string' } : { enumName }) },
  rules: { isIn: must((value) => isIn(value, values), 'enum', `Expected one of: ${values.join(', ')}.`) },
});

export const Choice = fieldOf(choice);
export const ChoiceList = fieldOf(({ form, ...from }: Parameters<typeof choice>[0] & { form?: Form }) =>
  listOf(choice(from), '', form),
);

/** A query parameter that may be repeated (`?id=a&id=b`); arrives as an array. */
export const RepeatedText = fieldOf(({ most, form }: { most: number; form?: Form }) => {
  const items = { type: 'string', maxLength: MAX_TEXT, ...form };
  const list = textList({ itemLength: items.maxLength, form: { maxItems: most, items } });
  return { ...list, coerce: (value) => (isString(value) ? [value] : value) };
});

export const TextList = fieldOf(textList);
export const TextMap = fieldOf(textMap);

interface TextListOptions {
  form?: Form;
  itemLength?: number;
  /** Of each, as is the rule. */
  pattern?: { regex: RegExp; expected: string };
  rule?: TextRule;
}

export function textList({ form, itemLength = MAX_TEXT, pattern, rule }: TextListOptions): FieldKind {
  const { schema, rules } = textOf(itemLength);
  const match = pattern && ((text: string) => (pattern.regex.test(text) ? null : pattern.expected));
  const judge = rule ?? match;
  const item = {
    schema: { ...schema, ...(pattern && { pattern: pattern.regex.source }) },
    rules: { ...rules, ...(judge && { rule: sentenceRule(judge, itemLength) }) },
  };
  return listOf(item, ' of strings', form);
}

export function textMap({ valueLength = MAX_TEXT, ...form }: MapForm & { valueLength?: number }): FieldKind {
  return mapOf(textOf(valueLength), ' whose values are strings', form);
}

type Bounds = Partial<Record<'minimum' | 'maximum', number>>;

/** PostgreSQL's `integer`. */
const MAX_INTEGER = 2_147_483_647;

/** A whole number, or its decimal digits as text (`"5"`). */
export const Integer = fieldOf(integer);

export function integer({ minimum = -MAX_INTEGER, maximum = MAX_INTEGER }: Bounds): FieldKind {
  const fits = (value: unknown): boolean => Math.abs(Number(value)) <= MAX_INTEGER;
  return {
    schema: { type: 'integer', minimum, maximum },
    coerce: numberOf(/^-?\d+$/),
    rules: {
      ...numberRules('int', 'whole number'),
      fits: must(fits, 'int_parsing_size', `Expected a whole number of at most ${MAX_INTEGER}.`),
      isInt: must(isInt, 'int_from_float', 'Expected a whole number, without a fraction.'),
      ...bounds(minimum, maximum),
    },
  };
}

/** A finite number, or one as text (`"1.5"`). */
export const Decimal = fieldOf(({ minimum }: { minimum: number }) => ({
  schema: { type: 'number', minimum },
  coerce: numberOf(/^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/),
  rules: {
    ...numberRules('float', 'number'),
    isFinite: must(Number.isFinite, 'finite_number', 'Expected a finite number.'),
    ...bounds(minimum, Number.MAX_VALUE),
  },
}));

function numberOf(form: RegExp): FieldKind['coerce'] {
  return (value) => (isString(value) && form.test(value) ? Number(value) : value);
}

const isNumber = (value: unknown): boolean => typeof value === 'number';

function numberRules(type: string, noun: string): Rules {
  return {
    isNumeric: must((value) => isNumber(value) || isString(value), `${type}_type`, `Expected a ${noun}.`),
    isNumber: must(isNumber, `${type}_parsing`, `Expected a ${noun}; this text is not one.`),
  };
}

function bounds(least: number, most: number): Rules {
  return {
    min: must((value) => min(value, least), 'greater_than_equal', `Expected a number of at least ${least}.`),
    max: must((value) => max(value, most), 'less_than_equal', `Expected a number of at most ${most}.`),
  };
}

const FLAGS: readonly unknown[] = ['true', 1, 'false', 0];

/** A boolean, also as `"true"`, `"false"`, 1 or 0. */
export const Flag = fieldOf(({ form }: { form?: Form }) => ({
  schema: { type: Boolean, ...form },
  coerce: (value) => (FLAGS.includes(value) ? value === 'true' || value === 1 : value),
  rules: {
    isScalar: must((value) => typeof value !== 'object', 'bool_type', 'Expected true or false.'),
    isBoolean: must(isBoolean, 'bool_parsing', 'Expected true or false.'),
  },
}));

/** An object that is kept as it is. @param options `maxLength`: characters of JSON */
export const FreeObject = fieldOf(({ maxLength }: { maxLength: number }) => {
  const isShort = (value: unknown): boolean => JSON.stringify(value ?? null).length <= maxLength;
  return {
    schema: { type: 'object', additionalProperties: {}, maxProperties: MAX_ELEMENTS },
    rules: {
      isObject: must(isObject, 'dict_type', 'Expected an object.'),
      maxMembers: maxItems(MAX_ELEMENTS, 'members'),
      jsonLength: must(isShort, 'value_error', `Expected at most ${maxLength} characters of JSON.`),
    },
  };
});

interface Model {
  type: DtoClass;
  /** Others are `extra_forbidden`; by default they are ignored. */
  onlyMembers?: readonly string[];
  /** Accepts an element as a text too, which is checked as the object that `read` makes of it. */
  orText?: { form?: Form; read: (text: string) => Record<string, unknown> };
  /** A null in a map removes the entry. */
  nullableValues?: boolean;
}

const PROBLEMS = Symbol('problems of an object');

/** Describes a nested object, whose problems are found when it is constructed. */
function objectOf({ type, onlyMembers, orText, nullableValues = false }: Model): FieldKind {
  const reference = { $ref: getSchemaPath(type) };
  const text = orText ? [{ type: 'string', ...orText.form }] : [];
  const oneOf = [reference, ...text, ...(nullableValues ? [{ type: 'null' }] : [])];
  const isModel = (value: unknown): boolean => value instanceof type || (value === null && nullableValues);
  return {
    schema: oneOf.length === 1 ? reference : { oneOf },
    model: type,
    coerce: (given) => {
      const value = orText && isString(given) ? orText.read(given) : given;
      if (!isJsonObject(value)) {
        return value;
      }
      const dto = toDto(type, value);
      const extra = Object.keys(value).flatMap((name) =>
        onlyMembers?.includes(name) === false ? [{ ...unknownMember(name, onlyMembers), path: [name] }] : [],
      );
      return Object.defineProperty(dto, PROBLEMS, { value: [...fieldProblems(validateSync(dto)), ...extra] });
    },
    rules: {
      isModel: must(isModel, 'model_attributes_type', 'Expected an object.'),
      members: (dto) => (Object(dto) as { [PROBLEMS]?: FieldProblem[] })[PROBLEMS] ?? [],
    },
  };
}

export const Nested = fieldOf((model: Model) => ({ ...objectOf(model), schema: { type: model.type } }));

/** Given the elements that are objects; `path` starts with the index. */
type ListRule = (elements: readonly { index: number; element: object }[]) => FieldProblem[];

export const NestedList = fieldOf((options: Model & { listRule?: ListRule; form?: Form }) => {
  const { listRule = () => [], form, ...model } = options;
  const list = listOf(objectOf(model), '', form);
  const judge: Judge = (value) => {
    const all = Array.isArray(value) ? value.map((element, index) => ({ index, element })) : [];
    return listRule(all.filter(({ element }) => element instanceof model.type));
  };
  return { ...list, rules: { ...list.rules, listRule: judge } };
});

export const NestedMap = fieldOf(({ keyRule, ...form }: Model & MapForm) => {
  const { rules, ...model } = objectOf(form);
  const entry: Judge = (value, key) => [
    ...keyRule(key, key).map((problem) => ({ ...problem, path: ['[key]'] })),
    ...Object.values(rules).flatMap((judge) => judge(value, key)),
  ];
  return mapOf({ ...model, rules: { entry } }, '', { ...form, keyRule: () => [] });
});
