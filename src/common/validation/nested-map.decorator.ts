import { ValidateNested } from 'class-validator';
import { composeDecorators } from './compose-decorators.js';
import type { DtoClass } from './dto-class.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule, type FieldProblem } from './field-rule.js';
import { mapSchema, type KeySchema } from './map-schema.js';
import { isPlainObject } from './plain-object.js';
import { toDto } from './to-dto.js';
import { TooMany, unlessTooMany } from './too-many.js';

export interface NestedMapOptions extends FieldOptions {
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
