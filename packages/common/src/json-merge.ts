/** A parsed JSON object of any shape. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a parsed JSON value is an object (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Merges a patch into an object (RFC 7396): objects are merged member by member, null removes a member, anything else
 * replaces. Entries are copied, never assigned, so that no key reaches a prototype.
 */
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

/** The object without some of its members. */
export function without(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !names.includes(key)));
}

/** What happens to one leaf of a tree: its path from the root, and what is to stand there. */
type LeafMapper = (path: readonly string[], leaf: unknown) => unknown;

/** A copy of the tree with every leaf mapped; lists count as leaves unless they hold objects. */
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
