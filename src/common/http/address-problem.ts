const ABSOLUTE = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is;

/**
 * The sentence against a text that is no absolute address of one of the schemes, or null.
 *
 * Credentials in the address are refused because addresses are stored and shown in clear; white space and
 * backslashes because URL parsers disagree about them, and so about the host.
 */
export function addressProblem(address: string, schemes: readonly string[]): string | null {
  if (address === '') {
    return 'Expected an address; this text is empty.';
  }
  const [, scheme, rest = ''] = ABSOLUTE.exec(address) ?? [];
  if (scheme === undefined) {
    return `Expected an address that starts with ${oneOf(schemes.map((name) => `${name}://`))}.`;
  }
  if (!schemes.includes(scheme.toLowerCase())) {
    return `Expected an address of scheme ${oneOf(schemes)}.`;
  }
  if (/[\s\\\p{Cc}]/u.test(address)) {
    return 'Expected an address without white space, backslashes and control characters.';
  }
  // The URL parser skips extra slashes after these schemes and would take the path's first part for the host.
  if (/^[/?#]|^$/.test(rest) || !URL.canParse(address)) {
    return 'Expected an address with a valid host after the scheme.';
  }
  const { username, password } = new URL(address);
  return username === '' && password === ''
    ? null
    : 'Expected an address without a user name or password in it.';
}

function oneOf(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}
