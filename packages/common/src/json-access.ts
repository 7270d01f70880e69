import { isJsonObject } from './json-merge.js';

/**
 * The value at a path of object keys in parsed JSON; undefined where the path leaves the document. For JSON that others
 * wrote, whose shape is not known.
 */
export function jsonAt(value: unknown, ...path: string[]): unknown {
  let current = value;
  for (const key of path) {
    if (!isJsonObject(current) || !Object.hasOwn(current, key)) {
      return undefined;
    }
    current = current[key];
  }
  return current;
}

/** The non-empty text at the path, else null. */
export function jsonText(value: unknown, ...path: string[]): string | null {
  const found = jsonAt(value, ...path);
  return typeof found === 'string' && found !== '' ? found : null;
}

/** The finite number at the path, else null. */
export function jsonNumber(value: unknown, ...path: string[]): number | null {
  const found = jsonAt(value, ...path);
  return typeof found === 'number' && Number.isFinite(found) ? found : null;
}

/** The array at the path, else an empty one. */
export function jsonList(value: unknown, ...path: string[]): unknown[] {
  const found = jsonAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The parsed text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
