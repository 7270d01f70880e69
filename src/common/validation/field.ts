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

/** A class whose members carry rules. */
export type DtoClass<T extends object = object> = new () => T;

/** Members that the class does not declare are left out, and those that the input does not have stay absent. */
export const TO_DTO: ClassTransformOptions = { excludeExtraneousValues: true, exposeUnsetFields: false };

export function toDto<T extends object>(type: DtoClass<T>, plain: object): T {
  return plainToInstance(type, plain, TO_DTO);
}

/** What a rule says of a bad value; `path` leads further down from the property (an index, a key). */
export interface FieldProblem {
  type: string;
  msg: string;
  path?: string[];
}

/** The problems of a value that has broken a rule; at least one. */
export type DescribeProblems = (value: unknown) => FieldProblem[];

/** How a rule's description travels in class-validator's error context to the pipe. */
export interface RuleContext {
  describe: DescribeProblems;
}

/**
 * Options that make a class-validator decorator say *why* it refuses a value (type and sentence), not only that it does:
 * `@IsString(because({ type: 'string_type', msg: 'Expected a string.' }))`.
 */
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
  /** The member must be there, and not null. */
  required?: boolean;
  /** null is accepted and keeps its meaning. */
  nullable?: boolean;
}

const MISSING: FieldProblem = { type: 'missing', msg: 'This member is required.' };

/** Absent members pass unless required; null passes where it is allowed, and else is what `refused` says. */
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

/** A rule that class-validator has no decorator for: a value is good when `describe` finds no problem. */
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

/** What every field decorator takes: presence, and what OpenAPI says of the member. */
export interface FieldOptions extends Presence {
  description: string;
  /** null counts as absent. */
  nullIsAbsent?: boolean;
  example?: unknown;
  default?: unknown;
}

/** Turns what JSON holds into what the DTO holds; `undefined` counts as absent. */
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
    // Else class-transformer walks through the value, and takes a member called `constructor` for the class of its object.
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
  /** The rule of class-validator for the type of a value. */
  is: (why: ValidationOptions) => PropertyDecorator;
  /** What to say of a value of another type, also of null where it is not allowed. */
  otherwise: FieldProblem | DescribeProblems;
  /** Further rules: the first that is broken is reported. */
  rules?: PropertyDecorator[];
}

/** A member of the input with its rules. */
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

/** More elements than this serve no request of ours, and each one costs time and perhaps a line in the response. */
export const MAX_ELEMENTS = 1_000;

/** A list with each of its elements converted, and no more of them than show that it is too long; anything else as it is. */
export function toList(value: unknown, convert: Coerce = (element) => element): unknown {
  return Array.isArray(value) ? value.slice(0, MAX_ELEMENTS + 1).map(convert) : value;
}

/** The same of an object, as a `Map`: no key can reach a prototype. */
export function toMap(value: unknown, convert: Coerce = (entry) => entry): unknown {
  if (!isJsonObject(value)) {
    return value;
  }
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return new Map(entries.slice(0, MAX_ELEMENTS + 1).map(([key, entry]) => [key, convert(entry)]));
}

/** A list has at most so many elements. */
export function maxItems(most = MAX_ELEMENTS, noun = 'elements'): PropertyDecorator {
  return ArrayMaxSize(most, because(tooLong(most, noun)));
}

/** A map has at most so many elements. */
export function maxEntries(most = MAX_ELEMENTS): PropertyDecorator {
  return customRule('maxEntries', (value) =>
    value instanceof Map && value.size > most ? [tooLong(most, 'elements')] : [],
  );
}

function tooLong(most: number, noun: string): FieldProblem {
  return { type: 'too_long', msg: `Expected at most ${most} ${noun}.` };
}

/** The problems of the elements of a list or map, each behind its index or key. */
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
