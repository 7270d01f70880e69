import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiProperty } from '@nestjs/swagger';
import { type ClassTransformOptions, Expose, plainToInstance, Transform, Type } from 'class-transformer';
import { isArray, IsOptional, ValidateBy, ValidateIf, type ValidationError } from 'class-validator';
import { isJsonObject } from '@slipway/common/json-access.js';

export type DtoClass<T extends object = object> = new () => T;

/** Drops undeclared members, and keeps absent ones absent. */
export const TO_DTO: ClassTransformOptions = { excludeExtraneousValues: true, exposeUnsetFields: false };

export function toDto<T extends object>(type: DtoClass<T>, plain: object): T {
  return plainToInstance(type, plain, TO_DTO);
}

export interface FieldProblem {
  type: string;
  msg: string;
  /** Path to a part of the value. */
  path?: string[];
}

/** What is wrong with a value; `key` is that of an element. */
export type Judge = (value: unknown, key: string) => FieldProblem[];

/** Judges by rule name, ordered from the type of a value to its details: the first broken rule is reported. */
export type Rules = Record<string, Judge>;

export function must(holds: (value: unknown) => boolean, type: string, msg: string): Judge {
  return (value) => (holds(value) ? [] : [{ type, msg }]);
}

export function customRule(name: string, judge: Judge): PropertyDecorator {
  const validator = { validate: (value: unknown) => judge(value, '').length === 0 };
  // class-validator drops the context of a rule without a message.
  return ValidateBy({ name, validator }, { message: 'refused', context: { judge } });
}

/** Returns the first rule that each member breaks; if that rule is about parts of the value, all problems of parts. */
export function fieldProblems(errors: readonly ValidationError[]): FieldProblem[] {
  return errors.flatMap(({ property, value, constraints = {}, contexts = {} }) => {
    const all = Object.entries(constraints).flatMap(([rule, msg]): FieldProblem[] => {
      const { judge }: { judge?: Judge } = Object(contexts[rule]);
      return judge?.(value, property) ?? [{ type: 'value_error', msg }];
    });
    const told = all[0]?.path ? all.filter(({ path }) => path) : all.slice(0, 1);
    return told.map(({ path = [], ...problem }) => ({ ...problem, path: [property, ...path] }));
  });
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

/** JSON Schema, for OpenAPI only, except that `maxItems` holds. */
export type Form = Record<string, unknown> & { maxItems?: number; maxLength?: number };

export interface FieldKind {
  schema: object;
  /** Named in the schema by reference only, which does not tell the generator of it. */
  model?: DtoClass;
  coerce?: (value: unknown) => unknown;
  rules: Rules;
}

const same = <Value>(value: Value): Value => value;
const MISSING = must((value) => value !== undefined, 'missing', 'This member is required.');
const IF_PRESENT = ValidateIf((_object, value) => value !== undefined);

/** Makes the property a member of the input, and documents it; absent members pass unless required. */
export function field(
  description: string,
  { required = false, nullable = false, nullIsAbsent = false, example, default: usual }: FieldOptions,
  { schema, model, coerce = same, rules }: FieldKind,
): PropertyDecorator {
  // A choice of schemas has null among them.
  const orNull = ((nullable || nullIsAbsent) && !('oneOf' in schema)) || undefined;
  // `required` in a schema lists the members of an object, so this is `selfRequired`.
  const about = { description, selfRequired: required, nullable: orNull, example, default: usual };
  return applyDecorators(
    Expose(),
    // Else class-transformer takes a member called `constructor` for the class of its object.
    Type(() => Boolean),
    Transform(({ obj, key }) => {
      const value: unknown = obj[key];
      return value === undefined || (value === null && nullIsAbsent) ? undefined : coerce(value);
    }),
    ApiProperty(Object.assign({ required }, schema, about)),
    ...(model ? [(target: object) => ApiExtraModels(model)(target.constructor)] : []),
    required ? customRule('isDefined', MISSING) : nullable ? IsOptional() : IF_PRESENT,
    ...Object.entries(rules).map(([name, judge]) => customRule(name, judge)),
  );
}

/** A decorator for members of that kind, which its own options describe. */
export function fieldOf<Own extends object>(kindOf: (own: Own) => FieldKind) {
  return (description: string, options: FieldOptions & Own): PropertyDecorator =>
    field(description, options, kindOf(options));
}

/** More elements serve no request of ours, and each one costs time and perhaps a line in the response. */
export const MAX_ELEMENTS = 1_000;

/** None of a text, although its characters have keys. */
const entriesOf = (value: unknown): [unknown, unknown][] =>
  value instanceof Map ? [...value] : typeof value === 'object' ? Object.entries(value ?? {}) : [];

export function maxItems(most = MAX_ELEMENTS, noun = 'elements'): Judge {
  return must((value) => entriesOf(value).length <= most, 'too_long', `Expected at most ${most} ${noun}.`);
}

/** Judges the elements of a list or map by the first rule that each breaks, and says which they are. */
function eachElement(rules: Rules): Judge {
  const judged = ([key, element]: [unknown, unknown]): FieldProblem[] => {
    const all = Object.values(rules).map((judge) => judge(element, String(key)));
    const broken = all.find(({ length }) => length > 0) ?? [];
    return broken.map(({ path = [], ...problem }) => ({ ...problem, path: [String(key), ...path] }));
  };
  return (value) => entriesOf(value).flatMap(judged);
}

/** Converts no more elements than show that a list is too long. */
export function listOf(element: FieldKind, noun: string, form: Form = {}): FieldKind {
  const { schema, model, coerce = same, rules } = element;
  return {
    schema: { type: 'array', maxItems: MAX_ELEMENTS, items: schema, ...form },
    model,
    coerce: (value) =>
      Array.isArray(value) ? value.slice(0, MAX_ELEMENTS + 1).map((each) => coerce(each)) : value,
    rules: {
      isArray: must(isArray, 'list_type', `Expected a list${noun}.`),
      arrayMaxSize: maxItems(form.maxItems),
      elements: eachElement(rules),
    },
  };
}

export interface MapForm {
  keyRule: Judge;
  keySchema?: Form;
  most?: number;
}

/** Arrives as a `Map`, so no key can reach a prototype. */
export function mapOf(entry: FieldKind, noun: string, form: MapForm): FieldKind {
  const { schema, model, coerce = same, rules } = entry;
  const { keyRule, keySchema: propertyNames, most: maxProperties = MAX_ELEMENTS } = form;
  return {
    schema: { type: 'object', additionalProperties: schema, maxProperties, propertyNames },
    model,
    coerce: (value) => {
      const entries = isJsonObject(value) && entriesOf(value).slice(0, MAX_ELEMENTS + 1);
      return entries ? new Map(entries.map(([key, each]) => [key, coerce(each)])) : value;
    },
    rules: {
      isMap: must((value) => value instanceof Map, 'dict_type', `Expected an object${noun}.`),
      maxEntries: maxItems(maxProperties),
      entries: eachElement({ keys: (_entry, key) => keyRule(key, key), ...rules }),
    },
  };
}
