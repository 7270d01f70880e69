import { isJsonObject, type JsonObject, mapLeaves } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import type { InputProblem } from '../errors/problem-error.js';

/**
 * A tree with its masks replaced by what is stored in their places, as clients send back what they were shown.
 * @param problems gets those of masks that stand for nothing
 */
export function unmasked(
  tree: JsonObject,
  stored: JsonObject,
  loc: readonly string[],
  problems: InputProblem[],
  isSecret: (path: readonly string[]) => boolean,
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

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((current, name) => {
    if (Array.isArray(current)) {
      return current[Number(name)];
    }
    return isJsonObject(current) && Object.hasOwn(current, name) ? current[name] : undefined;
  }, value);
}
