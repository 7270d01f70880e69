import { isJsonObject } from '../json-merge.js';
import { z, type ZodType } from 'zod';

/**
 * The schema of an object whose member names come from people or from other servers. Every name is kept as it is;
 * `z.record` silently drops a member named `__proto__`.
 *
 * @param name rules of the names
 */
export function namedValues<Value>(
  name: ZodType<string, string>,
  value: ZodType<Value>,
): ZodType<Record<string, Value>> {
  return z
    .preprocess(
      (given) => (isJsonObject(given) ? new Map(Object.entries(given)) : given),
      z.map(name, value, { error: 'Input should be an object' }),
    )
    .transform(toObject);
}

/** An own member for each entry, whatever its name: assigning `__proto__` would set a prototype. */
function toObject<Value>(entries: ReadonlyMap<string, Value>): Record<string, Value> {
  return Object.fromEntries(entries);
}
