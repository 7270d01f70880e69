export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Merges a patch (RFC 7396), but for members with the value that stands for an unchanged one. Entries are copied, never
 * assigned, so that no key reaches a prototype.
 */
export function mergePatch(base: JsonObject, patch: JsonObject, unchanged?: unknown): JsonObject {
  const merged = new Map(Object.entries(base));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      merged.delete(key);
    } else if (isJsonObject(value)) {
      const known = merged.get(key);
      merged.set(key, mergePatch(isJsonObject(known) ? known : {}, value, unchanged));
    } else if (value !== unchanged) {
      merged.set(key, value);
    }
  }
  return Object.fromEntries(merged);
}

export function without(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !names.includes(key)));
}

type LeafMapper = (path: readonly string[], leaf: unknown) => unknown;

export function mapLeaves(value: unknown, map: LeafMapper, path: readonly string[] = []): unknown {
  if (isJsonObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, mapLeaves(member, map, [...path, key])]),
    );
  }
  return Array.isArray(value)
    ? value.map((element, index) => mapLeaves(element, map, [...path, String(index)]))
    : map(path, value);
}

/** The value at a path of object keys in JSON of unknown shape. */
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

export function jsonText(value: unknown, ...path: string[]): string | null {
  const found = jsonAt(value, ...path);
  return typeof found === 'string' && found !== '' ? found : null;
}

export function jsonNumber(value: unknown, ...path: string[]): number | null {
  const found = jsonAt(value, ...path);
  return typeof found === 'number' && Number.isFinite(found) ? found : null;
}

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

/** The values of a stream that has one in each line; what follows the last line is left out. @throws SyntaxError */
export async function* jsonLines(stream: NodeJS.ReadableStream): AsyncGenerator<unknown, void> {
  stream.setEncoding('utf8');
  let rest = '';
  for await (const chunk of stream) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.filter((text) => text.trim() !== '')) {
      yield JSON.parse(line);
    }
  }
}
