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
  fieldOf,
  type FieldOptions,
  type FieldProblem,
  listOf,
  mapOf,
  mapSchema,
  MAX_ELEMENTS,
  must,
  toDto,
} from './field.js';
import type { TextForm } from './text-fields.js';

/** An object that is kept as it is. @param options `maxLength`: characters of JSON */
export const FreeObject = fieldOf(({ maxLength }: { maxLength: number }) => {
  const isShort = (value: unknown): boolean => JSON.stringify(value ?? null).length <= maxLength;
  return {
    schema: mapSchema({}),
    rules: {
      isObject: must(isObject, 'dict_type', 'Expected an object.'),
      maxMembers: must(hasFewMembers, 'too_long', `Expected at most ${MAX_ELEMENTS} members.`),
      jsonLength: must(isShort, 'value_error', `Expected at most ${maxLength} characters of JSON.`),
    },
  };
});

function hasFewMembers(value: unknown): boolean {
  return Object.keys(Object(value)).length <= MAX_ELEMENTS;
}

interface NestedOptions extends FieldOptions {
  type: DtoClass;
  /** Of an element, which is checked as the object that it becomes. */
  fromText?: (text: string) => Record<string, unknown>;
  /** For OpenAPI only. */
  textForm?: TextForm;
  /** In a map, null removes an entry. */
  nullableValues?: boolean;
  /** Others are `extra_forbidden`; by default they are ignored. */
  onlyMembers?: readonly string[];
  /** The type of that problem. */
  notAnObject?: string;
}

function elementOf({ type, fromText, textForm, nullableValues }: NestedOptions): FieldKind {
  const reference = { $ref: getSchemaPath(type) };
  const text = fromText ? [{ type: 'string', ...textForm }] : [];
  const oneOf = [reference, ...text, ...(nullableValues ? [{ type: 'null' }] : [])];
  return {
    schema: oneOf.length === 1 ? reference : { oneOf },
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
  { type, nullableValues, notAnObject = 'model_attributes_type', ...options }: NestedOptions,
  kind: FieldKind,
  each = true,
): PropertyDecorator {
  const isGone = (value: unknown): boolean => value === null && nullableValues === true;
  return applyDecorators(
    // A schema that names the class by reference only does not tell the generator of it.
    (target: object) => ApiExtraModels(type)(target.constructor),
    ValidateNested({ each, ...because(must(isGone, notAnObject, 'Expected an object.')) }),
    field(description, options, kind),
  );
}

const STRANGERS = Symbol('members that may not be there');

export function Nested(description: string, options: NestedOptions): PropertyDecorator {
  const { type, onlyMembers } = options;
  if (onlyMembers) {
    SchemaRules({ additionalProperties: false })(type);
  }
  const coerce = (value: unknown): unknown => {
    const dto = toNested(type, value);
    const names = Object.keys(Object(value)).filter((name) => onlyMembers?.includes(name) === false);
    return names.length > 0 && dto ? Object.defineProperty(dto, STRANGERS, { value: names }) : dto;
  };
  return nested(description, options, { schema: { type }, coerce, rules: { onlyMembers: strangers } }, false);
}

function strangers(dto: unknown): FieldProblem[] {
  const { [STRANGERS]: names = [] } = Object(dto) as { [STRANGERS]?: string[] };
  const problem = { type: 'extra_forbidden', msg: 'This member is not known here.' };
  return names.map((name) => ({ ...problem, path: [name] }));
}

interface NestedListOptions<T extends object> extends NestedOptions {
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

interface NestedMapOptions extends NestedOptions {
  keyRule: (key: string) => Pick<FieldProblem, 'type' | 'msg'> | null;
  keySchema?: object;
}

export function NestedMap(
  description: string,
  { keyRule, keySchema, ...options }: NestedMapOptions,
): PropertyDecorator {
  const keys = (_entry: unknown, key: string): FieldProblem[] =>
    [keyRule(key) ?? []].flat().map((problem) => ({ ...problem, path: ['[key]'] }));
  return nested(description, options, mapOf({ ...elementOf(options), rules: { keys } }, '', keySchema));
}
