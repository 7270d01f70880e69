import { applyDecorators } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { type ClassTransformOptions, Expose, plainToInstance, Transform, Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsArray,
  IsDefined,
  IsInstance,
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

export interface FieldKind {
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
export function field(
  description: string,
  options: FieldOptions,
  { schema, coerce = (value) => value, is, otherwise, rules = [] }: FieldKind,
): PropertyDecorator {
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

interface Elements {
  /** Of one element. */
  schema: Record<string, unknown>;
  noun: string;
  judge: (element: unknown, key: string) => FieldProblem[];
  convert?: (element: unknown) => unknown;
}

export function listOf({ schema, noun, judge, convert }: Elements): FieldKind {
  return {
    schema: { type: 'array', maxItems: MAX_ELEMENTS, items: schema },
    coerce: (value) => toList(value, convert),
    is: IsArray,
    otherwise: { type: 'list_type', msg: `Expected a list of ${noun}.` },
    rules: [maxItems(), customRule('elements', elementProblems(judge))],
  };
}

interface Entries extends Elements {
  /** For OpenAPI only: `judge` checks the keys too. */
  keySchema: KeySchema | undefined;
  most?: number;
}

export interface KeySchema {
  enum?: readonly string[];
  pattern?: string;
  maxLength?: number;
}

/** Arrives as a `Map`, so no key can reach a prototype. */
export function mapOf({ schema, keySchema, noun, judge, convert, most = MAX_ELEMENTS }: Entries): FieldKind {
  const tooMany = { type: 'too_long', msg: `Expected at most ${most} elements.` };
  return {
    schema: mapSchema(schema, keySchema, most),
    coerce: (value) => toMap(value, convert),
    is: (why) => IsInstance(Map, why),
    otherwise: { type: 'dict_type', msg: `Expected an object${noun}.` },
    rules: [
      customRule('maxEntries', (map) => (map instanceof Map && map.size > most ? [tooMany] : [])),
      customRule('entries', elementProblems(judge)),
    ],
  };
}

/** `propertyNames` is JSON Schema, so new in OpenAPI 3.1. */
export function mapSchema(values: object, keys?: KeySchema, most = MAX_ELEMENTS): ApiPropertyOptions {
  const map = { type: 'object' as const, additionalProperties: { ...values }, maxProperties: most };
  return keys ? Object.assign(map, { propertyNames: keys }) : map;
}

/** Judges the elements of a list or map, and says which they are. */
export function elementProblems(judge: Elements['judge']): DescribeProblems {
  return (value) =>
    Array.isArray(value) || value instanceof Map
      ? [...value.entries()].flatMap(([key, element]: [unknown, unknown]) =>
          judge(element, String(key)).map((problem) => ({
            ...problem,
            path: [String(key), ...(problem.path ?? [])],
          })),
        )
      : [];
}
