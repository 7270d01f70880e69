const MAX_LENGTH = 250;

/** What git refuses in names of branches (git-check-ref-format), and a leading dash, which reads as an option. */
const REFUSED = [/^[-./@]$|^[-./]/, /[./]$|\.lock$/, /\.\.|\/\/|\/\.|\.lock\/|@\{/, /[\p{Cc}\s~^:?*[\\]/u];

/** The sentence against a text that cannot name a branch, or null. */
export function branchNameProblem(name: string): string | null {
  if (name === '' || name.length > MAX_LENGTH) {
    return `Expected the name of a branch, of 1 to ${MAX_LENGTH} characters.`;
  }
  return REFUSED.some((pattern) => pattern.test(name))
    ? 'Expected the name of a branch such as fix/parser.'
    : null;
}
