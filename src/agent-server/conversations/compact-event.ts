/** Free JSON, where null means something, and a member that strict readers want even when it is null. */
const KEPT_AS_IS = new Set(['data', 'value', 'meta', 'inputSchema', 'command']);

/** The same event without its null members: that is how clients know them. */
export function compactEvent<T extends object>(event: T): T {
  const compact = withoutNulls(event);
  return isSameShape(compact, event) ? compact : event;
}

/** Only members that may be null are left out, and those may be absent too. */
function isSameShape<T>(value: unknown, like: T): value is T {
  return typeof value === typeof like;
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => withoutNulls(item));
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => {
      if (KEPT_AS_IS.has(key)) {
        return [[key, member]];
      }
      return member === null || member === undefined ? [] : [[key, withoutNulls(member)]];
    }),
  );
}
