/**
 * Keeps only the listed members, as Bitbucket's `fields` parameter does (`next,values.id,values.user.uuid`); lists are
 * descended into. Adding and removing with `+` and `-` is not imitated.
 */
export function partialResponse(body: unknown, fields: string | null): unknown {
  return fields === null
    ? body
    : keep(
        body,
        fields.split(',').map((field) => field.split('.')),
      );
}

function keep(value: unknown, paths: string[][]): unknown {
  if (Array.isArray(value)) {
    return value.map((element) => keep(element, paths));
  }
  if (typeof value !== 'object' || value === null || paths.some((path) => path.length === 0)) {
    return value;
  }
  const kept: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    const below = paths.filter((path) => path[0] === key).map((path) => path.slice(1));
    if (below.length > 0) {
      kept[key] = keep(member, below);
    }
  }
  return kept;
}
