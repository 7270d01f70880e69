import { composeDecorators } from './compose-decorators.js';
import { documentedField, type FieldOptions } from './field-options.js';
import { fieldRule } from './field-rule.js';

const ISO_8601 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** A moment as ISO 8601 text with a time zone; arrives as a `Date`. */
export function Instant(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String, format: 'date-time' }, (value) =>
      typeof value === 'string' ? (parseInstant(value) ?? value) : value,
    ),
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

function parseInstant(text: string): Date | null {
  const [matched, year, month, day] = ISO_8601.exec(text) ?? [];
  const date = new Date(matched ?? Number.NaN);
  // `Date` reads 31 February as 3 March, and an offset may lead beyond the years that ISO 8601 has four digits for.
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) <= daysInMonth && date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999
    ? date
    : null;
}
