/** Custom secrets become environment variables of sandboxes, so their names are variable names. */
export const CUSTOM_SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Names are index entries, which PostgreSQL keeps below a third of a page. */
const LONGEST = 255;

/** The same in the words of OpenAPI. */
export const CUSTOM_SECRET_FORM = { pattern: CUSTOM_SECRET_NAME.source, maxLength: LONGEST };

/** The sentence against a text that cannot name a custom secret, or null. */
export function customSecretNameProblem(name: string): string | null {
  if (name.length > LONGEST) {
    return `Expected a name of at most ${LONGEST} characters.`;
  }
  return CUSTOM_SECRET_NAME.test(name)
    ? null
    : 'Expected a name such as API_TOKEN: a letter or underscore, then letters, digits and underscores.';
}
