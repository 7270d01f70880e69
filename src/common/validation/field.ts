import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { type ClassTransformOptions, Expose, plainToInstance, Transform, Type } from 'class-transformer';
import { arrayMaxSize, isArray, IsOptional, ValidateBy, ValidateIf } from 'class-validator';
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

/** What is wrong with a value; `key` is that of an element. */
export type Judge = (value: unknown, key: string) => FieldProblem[];

/** By name, from the type of a value to its details: the first that is broken is reported. */
export type Rules = Record<string, Judge>;

export function must(holds: (value: unknown) => boolean, type: string, msg: string): Judge {
  return (value) => (holds(value) ? [] : [{ type, msg }]);
}

/** class-validator drops the context of a rule without a message. */
export function because(judge: Judge): { message: string; context: { judge: Judge } } {
  return { message: 'refused', context: { judge } };
}

export function customRule(name: string, judge: Judge): PropertyDecorator {
  const validator = { validate: (value: unknown) => judge(value, '').length === 0 };
  return ValidateBy({ name, validator }, because(judge));
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
  /** What `ApiProperty` takes. */
  schema: object;
  coerce?: (value: unknown) => unknown;
  rules: Rules;
}

/** Makes the property a member of the input, and documents it; absent members pass unless required. */
export function field(
  description: string,
  { required = false, nullable = false, nullIsAbsent = false, example, default: usual }: FieldOptions,
  { schema, coerce = same, rules }: FieldKind,
): PropertyDecorator {
  const missing = must((value) => value !== undefined, 'missing', 'This member is required.');
  const presence = nullable ? IsOptional() : ValidateIf((_object, value) => value !== undefined);
  // The generator wants the names of an object's own required members in the place of ours.
  const place = 'required' in schema ? 'selfRequired' : 'required';
  // A choice of schemas has null among them.
  const orNull = (nullable || nullIsAbsent) && !('oneOf' in schema) ? { nullable: true } : {};
  return applyDecorators(
    Expose(),
    // Else class-transformer takes a member called `constructor` for the class of its object.
    Type(() => Boolean),
    Transform(({ obj, key }) => {
      const value: unknown = obj[key];
      return value === undefined || (value === null && nullIsAbsent) ? undefined : coerce(value);
    }),
    ApiProperty(
      Object.assign({}, schema, { description, [place]: required, ...orNull, example, default: usual }),
    ),
    required ? customRule('isDefined', missing) : presence,
    ...Object.entries(rules).map(([name, judge]) => customRule(name, judge)),
  );
}

type FieldDecorator<Own> = (description: string, options: FieldOptions & Own) => PropertyDecorator;

/** A decorator for members of that kind, which its own options describe. */
export function fieldOf<Own extends object>(kindOf: (own: Own) => FieldKind): FieldDecorator<Own> {
  return (description, options) => field(description, options, kindOf(options));
}

function same<Value>(value: Value): Value {
  return value;
}

/** More elements serve no request of ours, and each one costs time and perhaps a line in the response. */
export const MAX_ELEMENTS = 1_000;

export function maxItems(most = MAX_ELEMENTS, noun = 'elements'): Judge {
  const isFew = (value: unknown): boolean =>
    value instanceof Map ? value.size <= most : arrayMaxSize(value, most);
  return must(isFew, 'too_long', `Expected at most ${most} ${noun}.`);
}

/** Judges the elements of a list or map by the first rule that each breaks, and says which they are. */
function eachElement(rules: Rules): Judge {
  const judged = (key: string, element: unknown): FieldProblem[] =>
    Object.values(rules)
      .map((judge) => judge(element, key))
      .find(({ length }) => length > 0)
      ?.map((problem) => ({ ...problem, path: [key, ...(problem.path ?? [])] })) ?? [];
  return (value) =>
    value instanceof Map || Array.isArray(value)
      ? [...value.entries()].flatMap(([key, element]: [unknown, unknown]) => judged(String(key), element))
      : [];
}

/** Converts no more elements than show that a list is too long. @param form for OpenAPI only */
export function listOf({ schema, coerce = same, rules }: FieldKind, noun: string, form?: object): FieldKind {
  return {
    schema: { type: 'array', maxItems: MAX_ELEMENTS, items: schema, ...form },
    coerce: (value) =>
      Array.isArray(value) ? value.slice(0, MAX_ELEMENTS + 1).map((each) => coerce(each)) : value,
    rules: {
      isArray: must(isArray, 'list_type', `Expected a list${noun}.`),
      arrayMaxSize: maxItems(),
      elements: eachElement(rules),
    },
  };
}

/** Arrives as a `Map`, so no key can reach a prototype. @param keys for OpenAPI only */
export function mapOf(entry: FieldKind, noun: string, keys?: object, most = MAX_ELEMENTS): FieldKind {
  const { schema, coerce = same, rules } = entry;
  return {
    schema: mapSchema(schema, keys, most),
    coerce: (value) => {
      const entries = value instanceof Map ? [...value] : isJsonObject(value) && Object.entries(value);
      return entries
        ? new Map(entries.slice(0, MAX_ELEMENTS + 1).map(([key, each]) => [key, coerce(each)]))
        : value;
    },
    rules: {
      isMap: must((value) => value instanceof Map, 'dict_type', `Expected an object${noun}.`),
      maxEntries: maxItems(most),
      entries: eachElement(rules),
    },
  };
}

/** `propertyNames` is JSON Schema, so new in OpenAPI 3.1. */
export function mapSchema(values: object, propertyNames?: object, most = MAX_ELEMENTS): object {
  return { type: 'object', additionalProperties: values, maxProperties: most, propertyNames };
}
