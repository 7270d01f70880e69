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
type Reason = FieldProblem | DescribeProblems;

export interface RuleContext {
  describe: DescribeProblems;
}

/** Makes a class-validator decorator say why it refuses a value. */
export function because(why: Reason, options?: ValidationOptions): ValidationOptions {
  // class-validator drops the context of a rule without a message.
  return { ...options, message: 'refused', context: { describe: describing(why) } satisfies RuleContext };
}

export function describing(why: Reason): DescribeProblems {
  return typeof why === 'function' ? why : () => [why];
}

export function customRule(name: string, describe: DescribeProblems): PropertyDecorator {
  const validator = { validate: (value: unknown) => describe(value).length === 0 };
  return ValidateBy({ name, validator }, because(describe));
}

export interface FieldOptions {
  example?: unknown;
  default?: unknown;
  required?: boolean;
  /** null is accepted and keeps its meaning. */
  nullable?: boolean;
  /** null counts as absent. */
  nullIsAbsent?: boolean;
}

export interface FieldDefinition {
  description: string;
  options?: FieldOptions;
  schema: ApiPropertyOptions;
  coerce?: (value: unknown) => unknown;
  is: (why: ValidationOptions) => PropertyDecorator;
  /** Also for null where it is not allowed. */
  otherwise: Reason;
  /** The first that is broken is reported. */
  rules?: PropertyDecorator[];
}

const MISSING: FieldProblem = { type: 'missing', msg: 'This member is required.' };

/** Makes the property a member of the input, and documents it; absent members pass unless required. */
export function field({
  description,
  options = {},
  schema,
  coerce = (value) => value,
  is,
  otherwise,
  rules = [],
}: FieldDefinition): PropertyDecorator {
  const { required = false, nullable = false, nullIsAbsent = false, example } = options;
  const presence = nullable ? IsOptional() : ValidateIf((_object, value) => value !== undefined);
  const describe: DescribeProblems = (value) =>
    value === undefined ? [MISSING] : describing(otherwise)(value);
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
    required ? IsDefined(because(describe)) : presence,
    is(because(otherwise)),
    ...rules,
  );
}

/** More elements serve no request of ours, and each one costs time and perhaps a line in the response. */
export const MAX_ELEMENTS = 1_000;

/** Converts elements, and no more of them than show that a list is too long. */
export function toList(value: unknown, convert = (element: unknown) => element): unknown {
  return Array.isArray(value) ? value.slice(0, MAX_ELEMENTS + 1).map((each) => convert(each)) : value;
}

/** Gives a `Map`: no key can reach a prototype. */
export function toMap(value: unknown, convert = (entry: unknown) => entry): unknown {
  if (!isJsonObject(value)) {
    return value;
  }
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return new Map(entries.slice(0, MAX_ELEMENTS + 1).map(([key, entry]) => [key, convert(entry)]));
}

export function maxItems(most = MAX_ELEMENTS, noun = 'elements'): PropertyDecorator {
  return ArrayMaxSize(most, because({ type: 'too_long', msg: `Expected at most ${most} ${noun}.` }));
}

export function maxEntries(most = MAX_ELEMENTS): PropertyDecorator {
  const tooMany = { type: 'too_long', msg: `Expected at most ${most} elements.` };
  return customRule('maxEntries', (map) => (map instanceof Map && map.size > most ? [tooMany] : []));
}

/** Judges the elements of a list or map, and says which they are. */
export function elementProblems(
  describe: (element: unknown, key: string) => FieldProblem[],
): DescribeProblems {
  return (value) =>
    Array.isArray(value) || value instanceof Map
      ? [...value.entries()].flatMap(([key, element]: [unknown, unknown]) =>
          describe(element, String(key)).map((problem) => ({
            ...problem,
            path: [String(key), ...(problem.path ?? [])],
          })),
        )
      : [];
}
