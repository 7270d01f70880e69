import { IsArray, IsBoolean, IsInt, IsNumber, Max, Min, type ValidationOptions } from 'class-validator';
import {
  because,
  composeDecorators,
  type DescribeProblems,
  documentedField,
  type FieldOptions,
  type FieldProblem,
  MAX_ELEMENTS,
  noCollection,
  presence,
  unlessTooMany,
} from './field.js';

interface NumberBounds {
  minimum?: number;
  maximum?: number;
}

/** Bounds that every whole number has. */
function integerBounds({ minimum, maximum }: NumberBounds): Required<NumberBounds> {
  return {
    minimum: Math.max(minimum ?? -MAX_INTEGER, -MAX_INTEGER),
    maximum: Math.min(maximum ?? MAX_INTEGER, MAX_INTEGER),
  };
}

/** The bounds as OpenAPI writes them. */
function boundsSchema({ minimum, maximum }: NumberBounds): NumberBounds {
  return { ...(minimum !== undefined && { minimum }), ...(maximum !== undefined && { maximum }) };
}

/** The problem of a number outside its bounds, if any. */
function boundsProblem(value: number, { minimum, maximum }: NumberBounds): FieldProblem | null {
  if (minimum !== undefined && value < minimum) {
    return { type: 'greater_than_equal', msg: `Expected a number of at least ${minimum}.` };
  }
  if (maximum !== undefined && value > maximum) {
    return { type: 'less_than_equal', msg: `Expected a number of at most ${maximum}.` };
  }
  return null;
}

/** PostgreSQL's `integer`: what a column can hold. */
const MAX_INTEGER = 2_147_483_647;

const TOO_LARGE: FieldProblem = {
  type: 'int_parsing_size',
  msg: `Expected a whole number of at most ${MAX_INTEGER}.`,
};

/** A whole number, or its decimal digits as text (`"5"`). */
export function Integer(options: FieldOptions & NumberBounds): PropertyDecorator {
  const describe: DescribeProblems = (value) => integerProblems(value, options);
  return composeDecorators(
    documentedField(options, { type: 'integer', ...integerBounds(options) }, coerceInteger),
    presence(options, describe),
    integerRules(options, because(describe)),
  );
}

/** A list of whole numbers; the bounds are each element's. */
export function IntegerList(options: FieldOptions & NumberBounds): PropertyDecorator {
  const noList = noCollection({ type: 'list_type', msg: 'Expected a list of whole numbers.' });
  const describe: DescribeProblems = (value) =>
    Array.isArray(value)
      ? value.flatMap((element, index) =>
          integerProblems(element, options).map((problem) => ({ ...problem, path: [String(index)] })),
        )
      : noList(value);
  return composeDecorators(
    documentedField(
      options,
      { type: 'array', maxItems: MAX_ELEMENTS, items: { type: 'integer', ...integerBounds(options) } },
      (value) => (Array.isArray(value) ? unlessTooMany(value.length, () => value.map(coerceInteger)) : value),
    ),
    presence(options, noList),
    IsArray(because(noList)),
    integerRules(options, because(describe, { each: true })),
  );
}

/** Decimal digits as the number they stand for; anything else as it is. */
function coerceInteger(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

function integerRules(bounds: NumberBounds, options: ValidationOptions): PropertyDecorator {
  const { minimum, maximum } = integerBounds(bounds);
  return composeDecorators(IsInt(options), Min(minimum, options), Max(maximum, options));
}

/** The problem of a value that should be a whole number, if any. */
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
  if (!Number.isInteger(value)) {
    return [{ type: 'int_from_float', msg: 'Expected a whole number, without a fraction.' }];
  }
  const problem = boundsProblem(value, bounds);
  return problem ? [problem] : [];
}

const DECIMAL = /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** A finite number, or one as text (`"1.5"`). */
export function Decimal(options: FieldOptions & NumberBounds): PropertyDecorator {
  const { minimum, maximum } = options;
  const why = because((value) => [decimalProblem(value, options)]);
  return composeDecorators(
    documentedField(options, { type: 'number', ...boundsSchema(options) }, (value) =>
      typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value,
    ),
    presence(options, (value) => [decimalProblem(value, options)]),
    IsNumber({}, why),
    ...(minimum === undefined ? [] : [Min(minimum, why)]),
    ...(maximum === undefined ? [] : [Max(maximum, why)]),
  );
}

/** The problem of a value that is no number within the bounds. */
function decimalProblem(value: unknown, bounds: NumberBounds): FieldProblem {
  if (typeof value === 'string') {
    return { type: 'float_parsing', msg: 'Expected a number; this text is not one.' };
  }
  if (typeof value !== 'number') {
    return { type: 'float_type', msg: 'Expected a number.' };
  }
  const outOfBounds = Number.isFinite(value) ? boundsProblem(value, bounds) : null;
  return outOfBounds ?? { type: 'finite_number', msg: 'Expected a finite number.' };
}

const FLAG_VALUES = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  [1, true],
  [0, false],
]);

/** A boolean, also as `"true"`, `"false"`, 1 or 0. */
export function Flag(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: Boolean }, (value) => FLAG_VALUES.get(value) ?? value),
    presence(options, flagProblem),
    IsBoolean(because(flagProblem)),
  );
}

/** The problem of a value that is no boolean. */
function flagProblem(value: unknown): FieldProblem[] {
  const type = typeof value === 'string' || typeof value === 'number' ? 'bool_parsing' : 'bool_type';
  return [{ type, msg: 'Expected true or false.' }];
}
