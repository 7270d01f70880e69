import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule, type FieldProblem } from './field-rule.js';

/** The form of a text in the words of OpenAPI; lengths in characters. */
export interface TextForm {
  pattern?: string;
  minLength?: number;
  maxLength?: number;
}

export interface TextOptions extends FieldOptions {
  /** A password in OpenAPI (`format: password`, `writeOnly`). */
  secret?: boolean;
  format?: string;
  /** What OpenAPI says of the form; it is `rule` that checks it. */
  form?: TextForm;
  /** White space around the text does not count. */
  trim?: boolean;
  /** A further rule: the sentence to answer with, or null. */
  rule?: (text: string) => string | null;
}

/** A string; nothing else is turned into one. */
export function Text(options: TextOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(
      options,
      {
        type: String,
        ...options.form,
        ...(options.format !== undefined && { format: options.format }),
        ...(options.secret === true && { format: 'password', writeOnly: true }),
      },
      (value) => (options.trim === true && typeof value === 'string' ? value.trim() : value),
    ),
    fieldRule('text', options, (value) => textProblems(value, options.rule)),
  );
}

/** The problems of a value that should be a string. */
export function textProblems(value: unknown, rule?: (text: string) => string | null): FieldProblem[] {
  if (typeof value !== 'string') {
    return [{ type: 'string_type', msg: 'Expected a string.' }];
  }
  const sentence = rule?.(value) ?? null;
  return sentence === null ? [] : [{ type: 'value_error', msg: sentence }];
}
