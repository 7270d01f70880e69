import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';

const ISO_8601 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** A moment as ISO 8601 text with a time zone; arrives as a `Date`. */
export function Instant(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String, format: 'date-time' }, (value) => {
      const date = typeof value === 'string' && ISO_8601.test(value) ? new Date(value) : undefined;
      return date && Number.isFinite(date.getTime()) ? date : value;
    }),
    fieldRule('instant', options, (value) =>
      value instanceof Date
        ? []
        : [
            typeof value === 'string'
              ? { type: 'datetime_parsing', msg: 'Expected a time such as 2030-01-31T12:00:00Z.' }
              : { type: 'datetime_type', msg: 'Expected a time such as 2030-01-31T12:00:00Z.' },
          ],
    ),
  );
}
