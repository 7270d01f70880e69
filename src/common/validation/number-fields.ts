import { isBoolean, isInt, isString, max, min } from 'class-validator';
import { field, type FieldKind, type FieldOptions, listOf, must, type Rules } from './field.js';

interface IntegerOptions extends FieldOptions {
  minimum?: number;
  maximum?: number;
}

/** PostgreSQL's `integer`. */
const MAX_INTEGER = 2_147_483_647;

/** A whole number, or its decimal digits as text (`"5"`). */
export function Integer(description: string, options: IntegerOptions): PropertyDecorator {
  return field(description, options, integer(options));
}

/** The bounds are each element's. */
export function IntegerList(description: string, options: IntegerOptions): PropertyDecorator {
  return field(description, options, listOf(integer(options), ' of whole numbers'));
}

function integer({ minimum = -MAX_INTEGER, maximum = MAX_INTEGER }: IntegerOptions): FieldKind {
  const fits = (value: unknown): boolean => Math.abs(Number(value)) <= MAX_INTEGER;
  return {
    schema: { type: 'integer', minimum, maximum },
    coerce: (value) => numberOf(value, /^-?\d+$/),
    rules: {
      ...numberRules('int', 'whole number'),
      fits: must(fits, 'int_parsing_size', `Expected a whole number of at most ${MAX_INTEGER}.`),
      isInt: must(isInt, 'int_from_float', 'Expected a whole number, without a fraction.'),
      ...bounds(minimum, maximum),
    },
  };
}

const DECIMAL = /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** A finite number, or one as text (`"1.5"`). */
export function Decimal(
  description: string,
  { minimum, ...options }: FieldOptions & { minimum: number },
): PropertyDecorator {
  return field(description, options, {
    schema: { type: 'number', minimum },
    coerce: (value) => numberOf(value, DECIMAL),
    rules: {
      ...numberRules('float', 'number'),
      isFinite: must(Number.isFinite, 'finite_number', 'Expected a finite number.'),
      ...bounds(minimum, Number.MAX_VALUE),
    },
  });
}

function numberOf(value: unknown, form: RegExp): unknown {
  return typeof value === 'string' && form.test(value) ? Number(value) : value;
}

function isNumeric(value: unknown): boolean {
  return isNumber(value) || isString(value);
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number';
}

function numberRules(type: string, noun: string): Rules {
  return {
    isNumeric: must(isNumeric, `${type}_type`, `Expected a ${noun}.`),
    isNumber: must(isNumber, `${type}_parsing`, `Expected a ${noun}; this text is not one.`),
  };
}

function bounds(minimum: number, maximum: number): Rules {
  const isLarge = (value: unknown): boolean => min(value, minimum);
  const isSmall = (value: unknown): boolean => max(value, maximum);
  return {
    min: must(isLarge, 'greater_than_equal', `Expected a number of at least ${minimum}.`),
    max: must(isSmall, 'less_than_equal', `Expected a number of at most ${maximum}.`),
  };
}

const FLAG_VALUES = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  [1, true],
  [0, false],
]);

/** A boolean, also as `"true"`, `"false"`, 1 or 0. */
export function Flag(description: string, options: FieldOptions = {}): PropertyDecorator {
  const msg = 'Expected true or false.';
  return field(description, options, {
    schema: { type: Boolean },
    coerce: (value) => FLAG_VALUES.get(value) ?? value,
    rules: {
      isScalar: must((value) => isBoolean(value) || isNumeric(value), 'bool_type', msg),
      isBoolean: must(isBoolean, 'bool_parsing', msg),
    },
  });
}
