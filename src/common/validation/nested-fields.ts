import { ApiExtraModels, getSchemaPath } from '@nestjs/swagger';
import { IsArray, IsInstance, IsObject, ValidateNested } from 'class-validator';
import { isJsonObject } from '@slipway/common/json-merge.js';
import {
  because,
  customRule,
  type DtoClass,
  elementProblems,
  field,
  type FieldOptions,
  type FieldProblem,
  type KeySchema,
  mapOf,
  mapSchema,
  MAX_ELEMENTS,
  maxItems,
  toDto,
  toList,
} from './field.js';
import { SchemaRules } from '../openapi/schema-rules.js';
import { type TextForm, valueError } from './text-fields.js';

const NO_OBJECT: FieldProblem = { type: 'model_attributes_type', msg: 'Expected an object.' };

/** An object that is kept as it is. @param options `maxLength`: characters of JSON */
export function FreeObject(
  description: string,
  { maxLength, ...options }: FieldOptions & { maxLength: number },
): PropertyDecorator {
  const sizeProblems = (value: unknown): FieldProblem[] => {
    if (isJsonObject(value) && Object.keys(value).length > MAX_ELEMENTS) {
      return [{ type: 'too_long', msg: `Expected at most ${MAX_ELEMENTS} members.` }];
    }
    const isLong = isJsonObject(value) && JSON.stringify(value).length > maxLength;
    return isLong ? [valueError(`Expected at most ${maxLength} characters of JSON.`)] : [];
  };
  return field(description, options, {
    schema: mapSchema({}),
    is: IsObject,
    otherwise: { type: 'dict_type', msg: 'Expected an object.' },
    rules: [customRule('jsonLength', sizeProblems)],
  });
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
  { type, onlyMembers, notAnObject = NO_OBJECT.type, ...options }: NestedOptions,
): PropertyDecorator {
  if (onlyMembers) {
    SchemaRules({ additionalProperties: false })(type);
  }
  return field(description, options, {
    schema: { type },
    coerce: (value) => {
      const dto = toElement({ type }, value);
      return onlyMembers && isJsonObject(value)
        ? Object.defineProperty(Object(dto), STRANGERS, {
            value: Object.keys(value).filter((name) => !onlyMembers.includes(name)),
          })
        : dto;
    },
    is: (why) => IsInstance(type, why),
    otherwise: { ...NO_OBJECT, type: notAnObject },
    rules: [ValidateNested(), ...(onlyMembers ? [customRule('onlyMembers', strangerProblems)] : [])],
  });
}

function strangerProblems(dto: unknown): FieldProblem[] {
  const { [STRANGERS]: names = [] } = Object(dto) as { [STRANGERS]?: string[] };
  const msg = 'This member is not known here.';
  return names.map((name) => ({ type: 'extra_forbidden', msg, path: [name] }));
}

interface ElementOptions {
  type: DtoClass;
  fromText?: (text: string) => Record<string, unknown>;
  /** For OpenAPI only; the string is checked as a member of the object. */
  textForm?: TextForm;
}

function toElement({ type, fromText }: ElementOptions, value: unknown): unknown {
  const plain = typeof value === 'string' && fromText ? fromText(value) : value;
  return isJsonObject(plain) ? toDto(type, plain) : plain;
}

interface NestedListOptions<T extends object> extends FieldOptions, ElementOptions {
  type: DtoClass<T>;
  /** Given the elements that are objects; `path` starts with the index. */
  listRule?: (elements: readonly { index: number; element: T }[]) => FieldProblem[];
  form?: { minItems?: number; maxItems?: number };
}

export function NestedList<T extends object>(
  description: string,
  options: NestedListOptions<T>,
): PropertyDecorator {
  const { type, fromText, textForm, listRule = () => [] } = options;
  const reference = { $ref: getSchemaPath(type) };
  const items = fromText ? { oneOf: [reference, { type: 'string', ...textForm }] } : reference;
  const noObjects = elementProblems((element) => (element instanceof type ? [] : [NO_OBJECT]));
  const badElements = (list: unknown): FieldProblem[] => {
    const elements = Array.isArray(list) ? list.map((element, index) => ({ index, element })) : [];
    return [...noObjects(list), ...listRule(elements.filter(({ element }) => element instanceof type))];
  };
  return field(description, options, {
    schema: { type: 'array', items, maxItems: MAX_ELEMENTS, ...options.form },
    coerce: (value) => toList(value, (element) => toElement(options, element)),
    is: IsArray,
    otherwise: { type: 'list_type', msg: 'Expected a list.' },
    rules: [
      // The schema names the class by reference only, so the generator has to be told of it.
      (target) => ApiExtraModels(type)(target.constructor),
      ValidateNested({ each: true }),
      maxItems(),
      IsInstance(type, because(badElements, { each: true })),
      ...(options.listRule ? [customRule('listRule', badElements)] : []),
    ],
  });
}

interface NestedMapOptions extends FieldOptions, ElementOptions {
  /** null removes an entry. */
  nullableValues?: boolean;
  keyRule: (key: string) => Pick<FieldProblem, 'type' | 'msg'> | null;
  keySchema?: KeySchema;
  schema: Record<string, unknown>;
}

export function NestedMap(description: string, options: NestedMapOptions): PropertyDecorator {
  const { type, keyRule, keySchema, nullableValues = false, schema } = options;
  const { rules = [], ...map } = mapOf({
    schema,
    keySchema,
    noun: '',
    convert: (entry) => toElement(options, entry),
    judge: (entry, key) => {
      const keyProblem = keyRule(key);
      const isGood = entry instanceof type || (entry === null && nullableValues);
      return [...(keyProblem ? [{ ...keyProblem, path: ['[key]'] }] : []), ...(isGood ? [] : [NO_OBJECT])];
    },
  });
  return field(description, options, { ...map, rules: [ValidateNested({ each: true }), ...rules] });
}
