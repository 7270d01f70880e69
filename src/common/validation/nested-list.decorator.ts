import { ApiExtraModels, getSchemaPath } from '@nestjs/swagger';
import { ValidateNested } from 'class-validator';
import { composeDecorators } from './compose-decorators.js';
import type { DtoClass } from './dto-class.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule, type FieldProblem } from './field-rule.js';
import { isPlainObject } from './plain-object.js';
import { toDto } from './to-dto.js';
import { TooMany, unlessTooMany } from './too-many.js';

export interface NestedListOptions<T extends object> extends FieldOptions {
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
