import { applyDecorators } from '@nestjs/common';
import { IsBoolean, IsInt, IsNumber, Max, Min } from 'class-validator';
import { field, type FieldOptions, type FieldProblem, listOf } from './field.js';

interface IntegerOptions extends FieldOptions {
  minimum?: number;
  maximum?: number;
}

/** PostgreSQL's `integer`. */
const MAX_INTEGER = 2_147_483_647;

/** A whole number, or its decimal digits as text (`"5"`). */
export function Integer(
  description: string,
  { minimum = -MAX_INTEGER, maximum = MAX_INTEGER, ...options }: IntegerOptions = {},
): PropertyDecorator {
  return field(description, options, {
    schema: { type: 'integer', minimum, maximum },
    coerce: coerceInteger,
    is: (why) => applyDecorators(IsInt(why), Min(minimum, why), Max(maximum, why)),
    otherwise: (value) => integerProblems(value, minimum, maximum),
  });
}

/** The bounds are each element's. */
export function IntegerList(
  description: string,
  { minimum = -MAX_INTEGER, maximum = MAX_INTEGER, ...options }: IntegerOptions = {},
): PropertyDecorator {
  const list = listOf({
    noun: 'whole numbers',
    schema: { type: 'integer', minimum, maximum },
    convert: coerceInteger,
    judge: (element) => integerProblems(element, minimum, maximum),
  });
  return field(description, options, list);
}

function coerceInteger(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

function integerProblems(value: unknown, minimum: number, maximum: number): FieldProblem[] {
  if (typeof value === 'string' && !/^-?\d+$/.test(value)) {
    return [{ type: 'int_parsing', msg: 'Expected a whole number; this text is not one.' }];
  }
  if (typeof value !== 'string' && typeof value !== 'number') {
    return [{ type: 'int_type', msg: 'Expected a whole number.' }];
  }
  if (typeof value === 'string' || !(Math.abs(value) <= MAX_INTEGER)) {
    return [{ type: 'int_parsing_size', msg: `Expected a whole number of at most ${MAX_INTEGER}.` }];
  }
  return Number.isInteger(value)
    ? boundsProblems(value, minimum, maximum)
    : [{ type: 'int_from_float', msg: 'Expected a whole number, without a fraction.' }];
}

function boundsProblems(value: number, minimum: number, maximum = Infinity): FieldProblem[] {
  if (value < minimum) {
    return [{ type: 'greater_than_equal', msg: `Expected a number of at least ${minimum}.` }];
  }
  return value > maximum
    ? [{ type: 'less_than_equal', msg: `Expected a number of at most ${maximum}.` }]
    : [];
}

const DECIMAL = /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** A finite number, or one as text (`"1.5"`). */
export function Decimal(
  description: string,
  { minimum, ...options }: FieldOptions & { minimum: number },
): PropertyDecorator {
  return field(description, options, {
    schema: { type: 'number', minimum },
    coerce: (value) => (typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value),
    is: (why) => applyDecorators(IsNumber({}, why), Min(minimum, why)),
    otherwise: (value) => decimalProblems(value, minimum),
  });
}

function decimalProblems(value: unknown, minimum: number): FieldProblem[] {
  if (typeof value !== 'number') {
    return typeof value === 'string'
      ? [{ type: 'float_parsing', msg: 'Expected a number; this text is not one.' }]
      : [{ type: 'float_type', msg: 'Expected a number.' }];
  }
  return Number.isFinite(value)
    ? boundsProblems(value, minimum)
    : [{ type: 'finite_number', msg: 'Expected a finite number.' }];
}

const FLAG_VALUES = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  [1, true],
  [0, false],
]);

/** A boolean, also as `"true"`, `"false"`, 1 or 0. */
export function Flag(description: string, options: FieldOptions = {}): PropertyDecorator {
  return field(description, options, {
    schema: { type: Boolean },
    coerce: (value) => FLAG_VALUES.get(value) ?? value,
    is: IsBoolean,
    otherwise: (value) => {
      const type = typeof value === 'string' || typeof value === 'number' ? 'bool_parsing' : 'bool_type';
      return [{ type, msg: 'Expected true or false.' }];
    },
  });
}
