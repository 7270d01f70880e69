import { z } from 'zod';
import { normalizeTimestamp } from '../event-timestamp.js';

/** How many items a page has. */
export const limitSchema = z.coerce.number().int().min(1).max(100).default(100);

/** A time, in the form that logs have it. */
export const timestampSchema = z.string().transform((text, context) => {
  // In a query a plus sign that was not escaped arrives as a blank.
  const timestamp = normalizeTimestamp(text.replace(/ (\d\d:?\d\d)$/, '+$1'));
  if (timestamp === null) {
    context.addIssue({ code: 'custom', message: 'Input should be a valid date and time' });
    return z.NEVER;
  }
  return timestamp;
});

export const sortOrderSchema = z.enum(['TIMESTAMP', 'TIMESTAMP_DESC']).default('TIMESTAMP');

/** A parameter that may be given several times. */
export const listSchema = z.union([z.string().transform((one) => [one]), z.array(z.string())]);
