import { applyDecorators } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { type ClassTransformOptions, Expose, plainToInstance, Transform, Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsDefined,
  IsOptional,
  ValidateBy,
  ValidateIf,
  type ValidationOptions,
} from 'class-validator';
import { isJsonObject } from '@slipway/common/json-merge.js';

export type DtoClass<T extends object = object> = new () => T;

/** Drops undeclared members, and keeps absent ones absent. */
export const TO_DTO: ClassTransformOptions = { excludeExtraneousValues: true, exposeUnsetFields: false };

export function toDto<T extends object>(type: DtoClass<T>, plain: object): T {
  return plainToInstance(type, plain, TO_DTO);
}

export interface FieldProblem {
  type: string;
  msg: string;
  path?: string[];
}

export type DescribeProblems = (value: unknown) => FieldProblem[];

export interface RuleContext {
  describe: DescribeProblems;
}

/** Makes a class-validator decorator say why it refuses a value. */
export function because(
  why: FieldProblem | DescribeProblems,
  options?: ValidationOptions,
): ValidationOptions {
  const describe = asDescription(why);
  return {
    ...options,
    message: ({ value }) => describe(value)[0]?.msg ?? '',
    context: { describe } satisfies RuleContext,
  };
}

function asDescription(why: FieldProblem | DescribeProblems): DescribeProblems {
  return typeof why === 'function' ? why : () => [why];
}

interface Presence {
  required?: boolean;
  /** null is accepted and keeps its meaning. */
  nullable?: boolean;
}

const MISSING: FieldProblem = { type: 'missing', msg: 'This member is required.' };

/** Absent members pass unless required. */
function presence(
  { required, nullable }: Presence,
  refused: FieldProblem | DescribeProblems,
): PropertyDecorator {
  if (required === true) {
    const describe = asDescription(refused);
    return IsDefined(because((value) => (value === undefined ? [MISSING] : describe(value))));
  }
  return nullable === true ? IsOptional() : ValidateIf((_object, value) => value !== undefined);
}

export function customRule(name: string, describe: DescribeProblems): PropertyDecorator {
  return ValidateBy(
    { name, validator: { validate: (value) => describe(value).length === 0 } },
    because(describe),
  );
}

/** {@link customRule}, for values that are there. */
export function fieldRule(name: string, options: Presence, describe: DescribeProblems): PropertyDecorator {
  return applyDecorators(presence(options, describe), customRule(name, describe));
}

export interface FieldOptions extends Presence {
  description: string;
  /** null counts as absent. */
  nullIsAbsent?: boolean;
  example?: unknown;
  default?: unknown;
}

type Coerce = (value: unknown) => unknown;

/** Makes the property a member of the input, with its coercion, and documents it. */
export function documentedField(
  options: FieldOptions,
  schema: ApiPropertyOptions,
  coerce: Coerce = (value) => value,
): PropertyDecorator {
  const { required = false, nullable = false, nullIsAbsent = false, description, example } = options;
  return applyDecorators(
    Expose(),
    // Else class-transformer takes a member called `constructor` for the class of its object.
    Type(() => Boolean),
    Transform(({ obj, key }) => {
      const value: unknown = obj[key];
      return value === undefined || (value === null && nullIsAbsent) ? undefined : coerce(value);
    }),
    ApiProperty(
      Object.assign({}, schema, {
        description,
        // The generator wants the names of an object's own required members in this place.
        ...(Array.isArray(schema.required) ? { selfRequired: required } : { required }),
        // A choice of schemas has null among them.
        ...((nullable || nullIsAbsent) && !('oneOf' in schema) && { nullable: true }),
        ...(example !== undefined && { example }),
        ...(options.default !== undefined && { default: options.default }),
      }),
    ),
  );
}

interface FieldDefinition {
  options: FieldOptions;
  schema: ApiPropertyOptions;
  coerce?: Coerce;
  is: (why: ValidationOptions) => PropertyDecorator;
  /** Also for null where it is not allowed. */
  otherwise: FieldProblem | DescribeProblems;
  /** The first that is broken is reported. */
  rules?: PropertyDecorator[];
}

export function field({
  options,
  schema,
  coerce,
  is,
  otherwise,
  rules = [],
}: FieldDefinition): PropertyDecorator {
  return applyDecorators(
    documentedField(options, schema, coerce),
    presence(options, otherwise),
    is(because(otherwise)),
    ...rules,
  );
}

/** More elements serve no request of ours, and each one costs time and perhaps a line in the response. */
export const MAX_ELEMENTS = 1_000;

/** Converts elements, and no more of them than show that a list is too long. */
export function toList(value: unknown, convert: Coerce = (element) => element): unknown {
  return Array.isArray(value) ? value.slice(0, MAX_ELEMENTS + 1).map(convert) : value;
}

/** Gives a `Map`: no key can reach a prototype. */
export function toMap(value: unknown, convert: Coerce = (entry) => entry): unknown {
  if (!isJsonObject(value)) {
    return value;
  }
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return new Map(entries.slice(0, MAX_ELEMENTS + 1).map(([key, entry]) => [key, convert(entry)]));
}

export function maxItems(most = MAX_ELEMENTS, noun = 'elements'): PropertyDecorator {
  return ArrayMaxSize(most, because(tooLong(most, noun)));
}

export function maxEntries(most = MAX_ELEMENTS): PropertyDecorator {
  return customRule('maxEntries', (value) =>
    value instanceof Map && value.size > most ? [tooLong(most, 'elements')] : [],
  );
}

function tooLong(most: number, noun: string): FieldProblem {
  return { type: 'too_long', msg: `Expected at most ${most} ${noun}.` };
}

export function elementProblems(
  describe: (element: unknown, key: string) => FieldProblem[],
): DescribeProblems {
  return (value) =>
    Array.isArray(value) || value instanceof Map
      ? [...value.entries()].flatMap(([key, element]: [unknown, unknown]) =>
          describe(element, String(key)).map(({ path = [], ...problem }) => ({
            ...problem,
            path: [String(key), ...path],
          })),
        )
      : [];
}
