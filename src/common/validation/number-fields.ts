import { applyDecorators } from '@nestjs/common';
import { IsArray, IsBoolean, IsInt, IsNumber, Max, Min, type ValidationOptions } from 'class-validator';
import {
  because,
  elementProblems,
  field,
  type FieldOptions,
  type FieldProblem,
  MAX_ELEMENTS,
  maxItems,
  toList,
} from './field.js';

interface NumberBounds {
  minimum?: number;
  maximum?: number;
}

/** PostgreSQL's `integer`. */
const MAX_INTEGER = 2_147_483_647;

const TOO_LARGE: FieldProblem = {
  type: 'int_parsing_size',
  msg: `Expected a whole number of at most ${MAX_INTEGER}.`,
};

/** A whole number, or its decimal digits as text (`"5"`). */
export function Integer(options: FieldOptions & NumberBounds): PropertyDecorator {
  const bounds = integerBounds(options);
  return field({
    options,
    schema: { type: 'integer', ...bounds },
    coerce: coerceInteger,
    is: (why) => integerRules(bounds, why),
    otherwise: (value) => integerProblems(value, bounds),
  });
}

/** The bounds are each element's. */
export function IntegerList(options: FieldOptions & NumberBounds): PropertyDecorator {
  const bounds = integerBounds(options);
  const badElements = elementProblems((element) => integerProblems(element, bounds));
  return field({
    options,
    schema: { type: 'array', maxItems: MAX_ELEMENTS, items: { type: 'integer', ...bounds } },
    coerce: (value) => toList(value, coerceInteger),
    is: IsArray,
    otherwise: { type: 'list_type', msg: 'Expected a list of whole numbers.' },
    rules: [maxItems(), integerRules(bounds, because(badElements, { each: true }))],
  });
}

function integerBounds({ minimum, maximum }: NumberBounds): Required<NumberBounds> {
  return {
    minimum: Math.max(minimum ?? -MAX_INTEGER, -MAX_INTEGER),
    maximum: Math.min(maximum ?? MAX_INTEGER, MAX_INTEGER),
  };
}

function coerceInteger(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

function integerRules(bounds: Required<NumberBounds>, options: ValidationOptions): PropertyDecorator {
  return applyDecorators(IsInt(options), Min(bounds.minimum, options), Max(bounds.maximum, options));
}

function integerProblems(value: unknown, bounds: NumberBounds): FieldProblem[] {
  if (typeof value === 'string') {
    return [
      /^-?\d+$/.test(value)
        ? TOO_LARGE
        : { type: 'int_parsing', msg: 'Expected a whole number; this text is not one.' },
    ];
  }
  if (typeof value !== 'number') {
    return [{ type: 'int_type', msg: 'Expected a whole number.' }];
  }
  if (!Number.isFinite(value) || Math.abs(value) > MAX_INTEGER) {
    return [TOO_LARGE];
  }
  return Number.isInteger(value)
    ? boundsProblems(value, bounds)
    : [{ type: 'int_from_float', msg: 'Expected a whole number, without a fraction.' }];
}

function boundsProblems(value: number, { minimum, maximum }: NumberBounds): FieldProblem[] {
  if (minimum !== undefined && value < minimum) {
    return [{ type: 'greater_than_equal', msg: `Expected a number of at least ${minimum}.` }];
  }
  return maximum !== undefined && value > maximum
    ? [{ type: 'less_than_equal', msg: `Expected a number of at most ${maximum}.` }]
    : [];
}

const DECIMAL = /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** A finite number, or one as text (`"1.5"`). */
export function Decimal(options: FieldOptions & NumberBounds): PropertyDecorator {
  const { minimum, maximum } = options;
  const bounds = { ...(minimum !== undefined && { minimum }), ...(maximum !== undefined && { maximum }) };
  return field({
    options,
    schema: { type: 'number', ...bounds },
    coerce: (value) => (typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value),
    is: (why) =>
      applyDecorators(
        IsNumber({}, why),
        ...(minimum === undefined ? [] : [Min(minimum, why)]),
        ...(maximum === undefined ? [] : [Max(maximum, why)]),
      ),
    otherwise: (value) => decimalProblems(value, bounds),
  });
}

function decimalProblems(value: unknown, bounds: NumberBounds): FieldProblem[] {
  if (typeof value === 'string') {
    return [{ type: 'float_parsing', msg: 'Expected a number; this text is not one.' }];
  }
  if (typeof value !== 'number') {
    return [{ type: 'float_type', msg: 'Expected a number.' }];
  }
  return Number.isFinite(value)
    ? boundsProblems(value, bounds)
    : [{ type: 'finite_number', msg: 'Expected a finite number.' }];
}

const FLAG_VALUES = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  [1, true],
  [0, false],
]);

/** A boolean, also as `"true"`, `"false"`, 1 or 0. */
export function Flag(options: FieldOptions): PropertyDecorator {
  return field({
    options,
    schema: { type: Boolean },
    coerce: (value) => FLAG_VALUES.get(value) ?? value,
    is: IsBoolean,
    otherwise: (value) => {
      const type = typeof value === 'string' || typeof value === 'number' ? 'bool_parsing' : 'bool_type';
      return [{ type, msg: 'Expected true or false.' }];
    },
  });
}
