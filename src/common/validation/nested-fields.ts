import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, getSchemaPath } from '@nestjs/swagger';
import { isObject, isString, ValidateNested } from 'class-validator';
import { isJsonObject } from '@slipway/common/json-merge.js';
import { SchemaRules } from '../openapi/schema-rules.js';
import {
  because,
  type DtoClass,
  field,
  type FieldKind,
  type FieldOptions,
  type FieldProblem,
  type Judge,
  listOf,
  mapOf,
  mapSchema,
  MAX_ELEMENTS,
  must,
  toDto,
} from './field.js';
import type { TextForm } from './text-fields.js';

/** An object that is kept as it is. @param options `maxLength`: characters of JSON */
export function FreeObject(
  description: string,
  { maxLength, ...options }: FieldOptions & { maxLength: number },
): PropertyDecorator {
  const isShort = (value: unknown): boolean => JSON.stringify(value ?? null).length <= maxLength;
  return field(description, options, {
    schema: mapSchema({}),
    rules: {
      isObject: must(isObject, 'dict_type', 'Expected an object.'),
      maxMembers: must(hasFewMembers, 'too_long', `Expected at most ${MAX_ELEMENTS} members.`),
      jsonLength: must(isShort, 'value_error', `Expected at most ${maxLength} characters of JSON.`),
    },
  });
}

function hasFewMembers(value: unknown): boolean {
  return Object.keys(Object(value)).length <= MAX_ELEMENTS;
}

interface ElementOptions extends FieldOptions {
  type: DtoClass;
  fromText?: (text: string) => Record<string, unknown>;
  /** For OpenAPI only; the string is checked as a member of the object. */
  textForm?: TextForm;
  /** In a map, null removes an entry. */
  nullableValues?: boolean;
}

function elementOf({ type, fromText, textForm, nullableValues }: ElementOptions): FieldKind {
  const reference = { $ref: getSchemaPath(type) };
  const others = [
    ...(fromText ? [{ type: 'string', ...textForm }] : []),
    ...(nullableValues ? [{ type: 'null' }] : []),
  ];
  return {
    schema: others.length === 0 ? reference : { oneOf: [reference, ...others] },
    coerce: (value) => toNested(type, fromText && isString(value) ? fromText(value) : value),
    rules: {},
  };
}

/** What `ValidateNested` reports where no object stands: for a list within a list it would go on. */
function toNested(type: DtoClass, value: unknown): unknown {
  return isJsonObject(value) ? toDto(type, value) : value === null ? null : false;
}

function nested(
  description: string,
  { type, nullableValues, ...options }: ElementOptions,
  kind: FieldKind,
  { each = true, problem = 'model_attributes_type' } = {},
): PropertyDecorator {
  const noObject = must((value) => value === null && nullableValues === true, problem, 'Expected an object.');
  return applyDecorators(
    // A schema that names the class by reference only does not tell the generator of it.
    (target: object) => ApiExtraModels(type)(target.constructor),
    ValidateNested({ each, ...because(noObject) }),
    field(description, options, kind),
  );
}

interface NestedOptions extends FieldOptions {
  type: DtoClass;
  /** Others are `extra_forbidden`; by default they are ignored. */
  onlyMembers?: readonly string[];
  notAnObject?: string;
}

const STRANGERS = Symbol('members that may not be there');

export function Nested(
  description: string,
  { onlyMembers, notAnObject, ...options }: NestedOptions,
): PropertyDecorator {
  if (onlyMembers) {
    SchemaRules({ additionalProperties: false })(options.type);
  }
  const coerce = (value: unknown): unknown => {
    const dto = toNested(options.type, value);
    const names = Object.keys(Object(value)).filter((name) => onlyMembers?.includes(name) === false);
    return names.length > 0 && dto ? Object.defineProperty(dto, STRANGERS, { value: names }) : dto;
  };
  const kind = { schema: { type: options.type }, coerce, rules: { onlyMembers: strangerProblems } };
  return nested(description, options, kind, { each: false, problem: notAnObject });
}

function strangerProblems(dto: unknown): FieldProblem[] {
  const { [STRANGERS]: names = [] } = Object(dto) as { [STRANGERS]?: string[] };
  const msg = 'This member is not known here.';
  return names.map((name) => ({ type: 'extra_forbidden', msg, path: [name] }));
}

interface NestedListOptions<T extends object> extends ElementOptions {
  type: DtoClass<T>;
  /** Given the elements that are objects; `path` starts with the index. */
  listRule?: (elements: readonly { index: number; element: T }[]) => FieldProblem[];
  form?: object;
}

export function NestedList<T extends object>(
  description: string,
  { listRule = () => [], form, ...options }: NestedListOptions<T>,
): PropertyDecorator {
  const list = listOf(elementOf(options), '', form);
  const elements = (value: unknown): FieldProblem[] => {
    const all = Array.isArray(value) ? value.map((element, index) => ({ index, element })) : [];
    const objects = all.filter(({ element }) => element instanceof options.type);
    // A problem of the list as a whole would hide which elements are no objects.
    return listRule(objects).filter(({ path }) => path !== undefined || objects.length === all.length);
  };
  return nested(description, options, { ...list, rules: { ...list.rules, elements } });
}

interface NestedMapOptions extends ElementOptions {
  keyRule: (key: string) => Pick<FieldProblem, 'type' | 'msg'> | null;
  keySchema?: object;
}

export function NestedMap(
  description: string,
  { keyRule, keySchema, ...options }: NestedMapOptions,
): PropertyDecorator {
  const keys: Judge = (_entry, key) => {
    const problem = keyRule(key);
    return problem ? [{ ...problem, path: ['[key]'] }] : [];
  };
  return nested(description, options, mapOf({ ...elementOf(options), rules: { keys } }, '', keySchema));
}
