import { composeDecorators } from '../../../common/validation/compose-decorators.js';
import { documentedField, type FieldOptions } from '../../../common/validation/field-options.js';
import { fieldRule } from '../../../common/validation/field-rule.js';
import { toInstant } from '../storing/instant.js';

/** A moment as events write it: a time without zone is UTC. Arrives as text with all its microseconds. */
export function EventTime(options: FieldOptions): PropertyDecorator {
  return composeDecorators(
    documentedField(options, { type: String, format: 'date-time' }, (value) =>
      typeof value === 'string' ? (toInstant(value) ?? value) : value,
    ),
    fieldRule('eventTime', options, (value) =>
      typeof value === 'string' && toInstant(value) === value
        ? []
        : [{ type: 'datetime_parsing', msg: 'Expected a time such as 2030-01-31T12:00:00Z.' }],
    ),
  );
}
