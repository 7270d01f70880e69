import { isJsonObject } from '../json-access.js';
import { z, type ZodType } from 'zod';

/** The schema of an object with names from users or other servers: `z.record` silently drops `__proto__`. */
export function namedValues<Value extends ZodType>(
  name: ZodType<string, string>,
  value: Value,
): ZodType<Record<string, z.output<Value>>, Readonly<Record<string, z.input<Value>>>> {
  return z
    .preprocess(
      (given: Readonly<Record<string, z.input<Value>>>) =>
        isJsonObject(given) ? new Map(Object.entries(given)) : given,
      z.map(name, value, { error: 'Input should be an object' }),
    )
    .transform(toObject);
}

/** `fromEntries`, since assigning `__proto__` would set a prototype. */
function toObject<Value>(entries: ReadonlyMap<string, Value>): Record<string, Value> {
  return Object.fromEntries(entries);
}
