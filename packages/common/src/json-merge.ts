export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Merges a patch (RFC 7396). Entries are copied, never assigned, so that no key reaches a prototype. */
export function mergePatch(base: JsonObject, patch: JsonObject): JsonObject {
  const merged = new Map(Object.entries(base));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      merged.delete(key);
    } else if (isJsonObject(value)) {
      const known = merged.get(key);
      merged.set(key, mergePatch(isJsonObject(known) ? known : {}, value));
    } else {
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
