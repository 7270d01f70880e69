import { ApiExtraModels, getSchemaPath } from '@nestjs/swagger';
import { ValidateNested } from 'class-validator';
import {
  composeDecorators,
  documentedField,
  type DtoClass,
  extraMembers,
  type FieldOptions,
  type FieldProblem,
  fieldRule,
  isPlainObject,
  rememberExtraMembers,
  toDto,
  TooMany,
  unlessTooMany,
} from './field.js';
import { type KeySchema, mapSchema } from './text-fields.js';

/** An object whose members are nobody's business here. */
export function FreeObject(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, mapSchema({})),
    fieldRule('freeObject', options, (value) =>
      isPlainObject(value) ? [] : [{ type: 'dict_type', msg: 'Expected an object.' }],
    ),
  );
}

interface NestedListOptions<T extends object> extends FieldOptions {
  type: DtoClass<T>;
  /** Accepts a bare string as an element and says which object it stands for. */
  fromText?: (text: string) => Record<string, unknown>;
  /** Rules over the whole list, given the elements that are objects; `path` starts with the index. */
  listRule?: (elements: readonly { index: number; element: T }[]) => FieldProblem[];
}

type ElementSchema = { $ref: string } | { oneOf: ({ $ref: string } | { type: 'string' })[] };

/** A list of objects with rules of their own. */
export function NestedList<T extends object>(options: NestedListOptions<T>): PropertyDecorator {
  const toElement = (value: unknown): unknown => {
    const plain = typeof value === 'string' && options.fromText ? options.fromText(value) : value;
    return isPlainObject(plain) ? toDto(options.type, plain) : plain;
  };
  return composeDecorators(
    documentModel(options.type),
    documentedField(options, { type: 'array', items: elementSchema(options) }, (value) =>
      Array.isArray(value) ? unlessTooMany(value.length, () => value.map(toElement)) : value,
    ),
    ValidateNested({ each: true }),
    fieldRule('nestedList', options, (value) => {
      if (value instanceof TooMany) {
        return [value.problem];
      }
      if (!Array.isArray(value)) {
        return [{ type: 'list_type', msg: 'Expected a list.' }];
      }
      const problems: FieldProblem[] = [];
      const elements: { index: number; element: T }[] = [];
      value.forEach((element: unknown, index) => {
        if (element instanceof options.type) {
          elements.push({ index, element });
        } else {
          problems.push({ type: 'model_attributes_type', msg: 'Expected an object.', path: [String(index)] });
        }
      });
      return [...problems, ...(options.listRule?.(elements) ?? [])];
    }),
  );
}

/** The elements' class is named by reference only, so OpenAPI has to be told of it. */
function documentModel(type: DtoClass): PropertyDecorator {
  return (target) => {
    ApiExtraModels(type)(target.constructor);
  };
}

function elementSchema<T extends object>({ type, fromText }: NestedListOptions<T>): ElementSchema {
  const reference = { $ref: getSchemaPath(type) };
  return fromText ? { oneOf: [reference, { type: 'string' }] } : reference;
}

interface NestedMapOptions extends FieldOptions {
  type: DtoClass;
  /** Accepts a bare string as a value and says which object it stands for. */
  fromText?: (text: string) => Record<string, unknown>;
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
  const toValue = (value: unknown): unknown => {
    const plain = typeof value === 'string' && options.fromText ? options.fromText(value) : value;
    return isPlainObject(plain) ? toDto(options.type, plain) : plain;
  };
  return composeDecorators(
    documentedField(options, mapSchema(options.schema, options.keySchema), (value) => {
      if (!isPlainObject(value)) {
        return value;
      }
      const entries = Object.entries(value);
      return unlessTooMany(
        entries.length,
        () => new Map(entries.map(([key, entry]) => [key, toValue(entry)])),
      );
    }),
    ValidateNested({ each: true }),
    fieldRule('nestedMap', options, (value) => {
      if (value instanceof TooMany) {
        return [value.problem];
      }
      if (!(value instanceof Map)) {
        return [{ type: 'dict_type', msg: 'Expected an object.' }];
      }
      return [...value].flatMap(([key, entry]: [string, unknown]) => {
        const problems: FieldProblem[] = [];
        const keyProblem = options.keyRule(key);
        if (keyProblem) {
          problems.push({ ...keyProblem, path: [key, '[key]'] });
        }
        if (!(entry instanceof options.type) && !(entry === null && options.nullableValues === true)) {
          problems.push({ type: 'model_attributes_type', msg: 'Expected an object.', path: [key] });
        }
        return problems;
      });
    }),
  );
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
  return composeDecorators(
    documentedField(options, { type: options.type }, (value) => {
      if (!isPlainObject(value)) {
        return value;
      }
      const dto = toDto(options.type, value);
      if (options.onlyMembers) {
        rememberExtraMembers(dto, value, options.onlyMembers);
      }
      return dto;
    }),
    ValidateNested(),
    fieldRule('nested', options, (value) => {
      if (!(value instanceof options.type)) {
        return [{ type: options.notAnObject ?? 'model_attributes_type', msg: 'Expected an object.' }];
      }
      return extraMembers(value).map((member) => ({
        type: 'extra_forbidden',
        msg: 'This member is not known here.',
        path: [member],
      }));
    }),
  );
}
