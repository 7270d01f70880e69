import { isBoolean, isInt, isString, max, min } from 'class-validator';
import { field, type FieldKind, fieldOf, type FieldOptions, listOf, must, type Rules } from './field.js';

interface Bounds {
  minimum?: number;
  maximum?: number;
}

/** PostgreSQL's `integer`. */
const MAX_INTEGER = 2_147_483_647;

/** A whole number, or its decimal digits as text (`"5"`). */
export const Integer = fieldOf(integer);

/** The bounds are each element's. */
export const IntegerList = fieldOf((each: Bounds) => listOf(integer(each), ' of whole numbers'));

function integer({ minimum = -MAX_INTEGER, maximum = MAX_INTEGER }: Bounds): FieldKind {
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

function numberOf(form: RegExp): (value: unknown) => unknown {
  return (value) => (isString(value) && form.test(value) ? Number(value) : value);
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number';
}

function numberRules(type: string, noun: string): Rules {
  return {
    isNumeric: must((value) => isNumber(value) || isString(value), `${type}_type`, `Expected a ${noun}.`),
    isNumber: must(isNumber, `${type}_parsing`, `Expected a ${noun}; this text is not one.`),
  };
}

function bounds(least: number, most: number): Rules {
  const isLarge = (value: unknown): boolean => min(value, least);
  const isSmall = (value: unknown): boolean => max(value, most);
  return {
    min: must(isLarge, 'greater_than_equal', `Expected a number of at least ${least}.`),
    max: must(isSmall, 'less_than_equal', `Expected a number of at most ${most}.`),
  };
}

const YES: readonly unknown[] = ['true', 1];
const NO: readonly unknown[] = ['false', 0];

/** A boolean, also as `"true"`, `"false"`, 1 or 0. */
export function Flag(description: string, options: FieldOptions = {}): PropertyDecorator {
  const msg = 'Expected true or false.';
  return field(description, options, {
    schema: { type: Boolean },
    coerce: (value) => (YES.includes(value) ? true : NO.includes(value) ? false : value),
    rules: {
      isScalar: must((value) => ['boolean', 'number', 'string'].includes(typeof value), 'bool_type', msg),
      isBoolean: must(isBoolean, 'bool_parsing', msg),
    },
  });
}
