import { ApiExtraModels, getSchemaPath } from '@nestjs/swagger';
import { isJsonObject, type JsonObject } from '@slipway/common/json-merge.js';
import { IsArray, IsInstance, IsObject, ValidateNested } from 'class-validator';
import { SchemaRules } from '../openapi/schema-rules.js';
import {
  because,
  composeDecorators,
  customRule,
  type DescribeProblems,
  documentedField,
  type DtoClass,
  extraMembers,
  type FieldOptions,
  type FieldProblem,
  MAX_ELEMENTS,
  noCollection,
  presence,
  rememberExtraMembers,
  toDto,
  unlessTooMany,
} from './field.js';
import { type KeySchema, mapSchema, type TextForm } from './text-fields.js';

const NO_OBJECT: FieldProblem = { type: 'model_attributes_type', msg: 'Expected an object.' };
const NO_MAP: FieldProblem = { type: 'dict_type', msg: 'Expected an object.' };

/** An object that is kept as it is, up to a number of characters of JSON. */
export function FreeObject({
  maxLength,
  ...options
}: FieldOptions & { maxLength: number }): PropertyDecorator {
  return composeDecorators(
    documentedField(options, mapSchema({})),
    presence(options, NO_MAP),
    IsObject(because(NO_MAP)),
    customRule('jsonLength', (value) => (isJsonObject(value) ? jsonLengthProblems(value, maxLength) : [])),
  );
}

/** The problem of an object with too many members, or too large as JSON. */
export function jsonLengthProblems(value: JsonObject, maxLength: number): FieldProblem[] {
  if (Object.keys(value).length > MAX_ELEMENTS) {
    return [{ type: 'too_long', msg: `Expected at most ${MAX_ELEMENTS} members.` }];
  }
  return JSON.stringify(value).length > maxLength
    ? [{ type: 'value_error', msg: `Expected at most ${maxLength} characters of JSON.` }]
    : [];
}

interface NestedOptions extends FieldOptions {
  type: DtoClass;
  /** The only members the object may have; others are `extra_forbidden`. Absent: others are ignored. */
  onlyMembers?: readonly string[];
  /** Machine type of the failure when the value is no object. */
  notAnObject?: string;
}

/** An object with rules of its own. */
export function Nested(options: NestedOptions): PropertyDecorator {
  const { type, onlyMembers } = options;
  const noObject: FieldProblem = { ...NO_OBJECT, type: options.notAnObject ?? NO_OBJECT.type };
  if (onlyMembers) {
    SchemaRules({ additionalProperties: false })(type);
  }
  return composeDecorators(
    documentedField(options, { type }, (value) => {
      if (!isJsonObject(value)) {
        return value;
      }
      const dto = toDto(type, value);
      if (onlyMembers) {
        rememberExtraMembers(dto, value, onlyMembers);
      }
      return dto;
    }),
    ValidateNested(),
    presence(options, noObject),
    IsInstance(type, because(noObject)),
    ...(onlyMembers ? [customRule('onlyMembers', unknownMembers)] : []),
  );
}

function unknownMembers(value: unknown): FieldProblem[] {
  const extra = typeof value === 'object' && value !== null ? extraMembers(value) : [];
  return extra.map((member) => ({
    type: 'extra_forbidden',
    msg: 'This member is not known here.',
    path: [member],
  }));
}

interface ElementOptions {
  type: DtoClass;
  /** Accepts a bare string as an element and says which object it stands for. */
  fromText?: (text: string) => Record<string, unknown>;
  /** What OpenAPI says of the form of such a string; it is checked as a member of the object. */
  textForm?: TextForm;
}

function toElement({ type, fromText }: ElementOptions, value: unknown): unknown {
  const plain = typeof value === 'string' && fromText ? fromText(value) : value;
  return isJsonObject(plain) ? toDto(type, plain) : plain;
}

interface NestedListOptions<T extends object> extends FieldOptions, ElementOptions {
  type: DtoClass<T>;
  /** Rules over the whole list, given the elements that are objects; `path` starts with the index. */
  listRule?: (elements: readonly { index: number; element: T }[]) => FieldProblem[];
  /** What OpenAPI says of its length; it is `listRule` that checks it. */
  form?: { minItems?: number; maxItems?: number };
}

/** A list of objects with rules of their own. */
export function NestedList<T extends object>(options: NestedListOptions<T>): PropertyDecorator {
  const { type, listRule } = options;
  const noList = noCollection({ type: 'list_type', msg: 'Expected a list.' });
  const badElements: DescribeProblems = (value) =>
    Array.isArray(value)
      ? [...noObjects(value, type), ...(listRule?.(elementsOf(value, type)) ?? [])]
      : noList(value);
  return composeDecorators(
    documentModel(type),
    documentedField(
      options,
      { type: 'array', items: elementSchema(options), maxItems: MAX_ELEMENTS, ...options.form },
      (value) =>
        Array.isArray(value)
          ? unlessTooMany(value.length, () => value.map((element) => toElement(options, element)))
          : value,
    ),
    ValidateNested({ each: true }),
    presence(options, noList),
    IsArray(because(noList)),
    IsInstance(type, because(badElements, { each: true })),
    ...(listRule ? [customRule('listRule', badElements)] : []),
  );
}

function noObjects(list: readonly unknown[], type: DtoClass): FieldProblem[] {
  return list.flatMap((element, index) =>
    element instanceof type ? [] : [{ ...NO_OBJECT, path: [String(index)] }],
  );
}

function elementsOf<T extends object>(
  list: readonly unknown[],
  type: DtoClass<T>,
): { index: number; element: T }[] {
  return list.flatMap((element, index) => (element instanceof type ? [{ index, element }] : []));
}

/** The elements' class is named by reference only, so OpenAPI has to be told of it. */
function documentModel(type: DtoClass): PropertyDecorator {
  return (target) => {
    ApiExtraModels(type)(target.constructor);
  };
}

type ElementSchema = { $ref: string } | { oneOf: ({ $ref: string } | ({ type: 'string' } & TextForm))[] };

function elementSchema({ type, fromText, textForm }: ElementOptions): ElementSchema {
  const reference = { $ref: getSchemaPath(type) };
  return fromText ? { oneOf: [reference, { type: 'string', ...textForm }] } : reference;
}

interface NestedMapOptions extends FieldOptions, ElementOptions {
  /** null as a value is kept (it means "remove"). */
  nullableValues?: boolean;
  /** The problem of a key, or null. */
  keyRule: (key: string) => Pick<FieldProblem, 'type' | 'msg'> | null;
  /** Schema of the keys in OpenAPI; it is `keyRule` that checks them. */
  keySchema?: KeySchema;
  /** Schema of the values in OpenAPI. */
  schema: Record<string, unknown>;
}

/** An object used as a map; arrives as a `Map`, so no key can reach a prototype. */
export function NestedMap(options: NestedMapOptions): PropertyDecorator {
  const { type, keyRule, nullableValues = false } = options;
  const noMap = noCollection(NO_MAP);
  const badEntries: DescribeProblems = (value) =>
    value instanceof Map
      ? [...value].flatMap(([key, entry]: [string, unknown]) => {
          const keyProblem = keyRule(key);
          const isBad = !(entry instanceof type) && !(entry === null && nullableValues);
          return [
            ...(keyProblem ? [{ ...keyProblem, path: [key, '[key]'] }] : []),
            ...(isBad ? [{ ...NO_OBJECT, path: [key] }] : []),
          ];
        })
      : noMap(value);
  return composeDecorators(
    documentedField(options, mapSchema(options.schema, options.keySchema), (value) => {
      if (!isJsonObject(value)) {
        return value;
      }
      const entries = Object.entries(value);
      return unlessTooMany(
        entries.length,
        () => new Map(entries.map(([key, entry]) => [key, toElement(options, entry)])),
      );
    }),
    ValidateNested({ each: true }),
    presence(options, noMap),
    IsInstance(Map, because(noMap)),
    customRule('mapEntries', badEntries),
  );
}
