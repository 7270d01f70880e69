import {
  composeDecorators,
  documentedField,
  type FieldOptions,
  type FieldProblem,
  fieldRule,
  TooMany,
  unlessTooMany,
} from './field.js';

interface NumberBounds {
  minimum?: number;
  maximum?: number;
}

/** The problem of a number outside its bounds, if any. */
function boundsProblems(value: number, bounds: NumberBounds): FieldProblem[] {
  if (bounds.minimum !== undefined && value < bounds.minimum) {
    return [{ type: 'greater_than_equal', msg: `Expected a number of at least ${bounds.minimum}.` }];
  }
  if (bounds.maximum !== undefined && value > bounds.maximum) {
    return [{ type: 'less_than_equal', msg: `Expected a number of at most ${bounds.maximum}.` }];
  }
  return [];
}

/** The bounds as OpenAPI writes them. */
function boundsSchema({ minimum, maximum }: NumberBounds): NumberBounds {
  return { ...(minimum !== undefined && { minimum }), ...(maximum !== undefined && { maximum }) };
}

const DECIMAL = /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** A finite number, or one as text (`"1.5"`). */
export function Decimal(options: FieldOptions & NumberBounds): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: 'number', ...boundsSchema(options) }, (value) =>
      typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value,
    ),
    fieldRule('decimal', options, (value) => decimalProblems(value, options)),
  );
}

function decimalProblems(value: unknown, bounds: NumberBounds): FieldProblem[] {
  if (typeof value === 'string') {
    return [{ type: 'float_parsing', msg: 'Expected a number; this text is not one.' }];
  }
  if (typeof value !== 'number') {
    return [{ type: 'float_type', msg: 'Expected a number.' }];
  }
  if (!Number.isFinite(value)) {
    return [{ type: 'finite_number', msg: 'Expected a finite number.' }];
  }
  return boundsProblems(value, bounds);
}

const COERCED = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  [1, true],
  [0, false],
]);

/** A boolean, also as `"true"`, `"false"`, 1 or 0. */
export function Flag(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: Boolean }, (value) => COERCED.get(value) ?? value),
    fieldRule('flag', options, flagProblems),
  );
}

function flagProblems(value: unknown): FieldProblem[] {
  if (typeof value === 'boolean') {
    return [];
  }
  return typeof value === 'string' || typeof value === 'number'
    ? [{ type: 'bool_parsing', msg: 'Expected true or false.' }]
    : [{ type: 'bool_type', msg: 'Expected true or false.' }];
}

/** PostgreSQL's `integer`: what a column can hold. */
const LARGEST = 2_147_483_647;

/** A whole number, or its decimal digits as text (`"5"`). */
export function Integer(options: FieldOptions & NumberBounds): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: 'integer', ...boundsSchema(options) }, coerceInteger),
    fieldRule('integer', options, (value) => integerProblems(value, options)),
  );
}

/** Decimal digits as the number they stand for; anything else as it is. */
function coerceInteger(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

/** The problems of a value that should be a whole number. */
function integerProblems(value: unknown, bounds: NumberBounds): FieldProblem[] {
  if (typeof value === 'string') {
    return /^-?\d+$/.test(value)
      ? [{ type: 'int_parsing_size', msg: `Expected a whole number of at most ${LARGEST}.` }]
      : [{ type: 'int_parsing', msg: 'Expected a whole number; this text is not one.' }];
  }
  if (typeof value !== 'number') {
    return [{ type: 'int_type', msg: 'Expected a whole number.' }];
  }
  if (!Number.isFinite(value) || Math.abs(value) > LARGEST) {
    return [{ type: 'int_parsing_size', msg: `Expected a whole number of at most ${LARGEST}.` }];
  }
  if (!Number.isInteger(value)) {
    return [{ type: 'int_from_float', msg: 'Expected a whole number, without a fraction.' }];
  }
  return boundsProblems(value, bounds);
}

/** A list of whole numbers; the bounds are each element's. */
export function IntegerList(options: FieldOptions & NumberBounds): PropertyDecorator {
  return composeDecorators(
    documentedField(
      options,
      { type: 'array', items: { type: 'integer', ...boundsSchema(options) } },
      (value) => (Array.isArray(value) ? unlessTooMany(value.length, () => value.map(coerceInteger)) : value),
    ),
    fieldRule('integerList', options, (value) => {
      if (value instanceof TooMany) {
        return [value.problem];
      }
      return Array.isArray(value)
        ? value.flatMap((element, index) =>
            integerProblems(element, options).map((problem) => ({ ...problem, path: [String(index)] })),
          )
        : [{ type: 'list_type', msg: 'Expected a list of whole numbers.' }];
    }),
  );
}
