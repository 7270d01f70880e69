/** A tree with its masks replaced by what is stored in their places. */
export function unmasked(
  tree: JsonObject,
  stored: JsonObject,
  loc: readonly string[],
  problems: InputProblem[],
  isSecret: (path: readonly string[]) => boolean = isSecretPath,
): JsonObject {
  const copy = mapLeaves(tree, (path, leaf) => {
    if (leaf !== MASK || !isSecret(path)) {
      return leaf;
    }
    const known = valueAt(stored, path);
    if (typeof known === 'string') {
      return known;
    }
    const msg = 'Expected the secret itself: nothing is stored that this mask could stand for.';
    problems.push({ loc: [...loc, ...path], msg, type: 'value_error' });
    return leaf;
  });
  return isJsonObject(copy) ? copy : {};
}
