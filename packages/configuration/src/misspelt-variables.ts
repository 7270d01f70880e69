import { closest, distance } from 'fastest-levenshtein';

/** OpenTelemetry reads more of its own than we know. */
const OF_OTHERS = /^OTEL_/;

/**
 * What an operator has set that nothing reads though it looks as if it were ours: one or two letters off, or with the first words
 * of a variable that there is.
 *
 * @param page where all variables are described
 * @returns a line for each
 */
export function misspeltVariables(
  environment: NodeJS.ProcessEnv,
  known: readonly string[],
  page: string,
): string[] {
  const families = new Set(known.map(familyOf));
  return Object.keys(environment)
    .filter((name) => /^[A-Z][A-Z0-9_]+$/.test(name) && !known.includes(name) && !OF_OTHERS.test(name))
    .flatMap((name) => {
      const nearest = closest(name, known);
      if (distance(name, nearest) <= Math.min(2, Math.floor(name.length / 5))) {
        return [`${name} is no variable of this service and has no effect: did you mean ${nearest}?`];
      }
      return families.has(familyOf(name))
        ? [`${name} is no variable of this service and has no effect: ${page} has all of them`]
        : [];
    });
}

/** The first word of `SANDBOX_…` names the family, and the first two words of other variables. */
function familyOf(name: string): string {
  return /^SANDBOX_|^[A-Z0-9]+_[A-Z0-9]+_/.exec(name)?.[0] ?? name;
}
