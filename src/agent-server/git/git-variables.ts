import type { GitAccess, GitCredential } from '../../agent-protocol/git-access.js';

/**
 * Variables by which git finds credentials, and its user's name. Each credential is for its own server only; helpers
 * that any file configures for that server are not asked. Whoever may read the environment of the git process may read
 * the credentials: nothing else holds them, no file, no argument, no address.
 *
 * @param settings further configuration
 * @see git-config(1), "GIT_CONFIG_COUNT"; gitcredentials(7)
 */
export function gitVariables(
  { credentials, identity }: Pick<GitAccess, 'credentials' | 'identity'>,
  settings: readonly [string, string][] = [],
): Record<string, string> {
  const helpers = credentials.flatMap(({ origin }, index): [string, string][] => [
    // An empty one forgets those before it, also our own for the same server: the last one given counts.
    [`credential.${origin}.helper`, ''],
    [`credential.${origin}.helper`, helperFor(index)],
  ]);
  const names: [string, string][] =
    identity === null
      ? []
      : [
          ['user.name', identity.name],
          ['user.email', identity.email],
        ];
  const values = credentials.flatMap(valuesFor);
  return { ...configVariables([...settings, ...helpers, ...names]), ...Object.fromEntries(values) };
}

/** Configuration that goes before that of all files. */
function configVariables(entries: readonly [string, string][]): Record<string, string> {
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return variables.length === 0
    ? {}
    : { GIT_CONFIG_COUNT: String(entries.length), ...Object.fromEntries(variables) };
}

/** What in it must not be seen; servers get name and password in one piece, mostly in base64. */
export function gitSecrets(credentials: readonly GitCredential[]): string[] {
  return credentials.flatMap(({ username, password }) => [password, `${username}:${password}`]);
}

function helperFor(index: number): string {
  const answer = `printf 'username=%s\\npassword=%s\\n' "$${userVariable(index)}" "$${passwordVariable(index)}"`;
  return `!f() { if [ "$1" = get ]; then ${answer}; fi; }; f`;
}

function valuesFor({ username, password }: GitCredential, index: number): [string, string][] {
  return [
    [userVariable(index), username],
    [passwordVariable(index), password],
  ];
}

function userVariable(index: number): string {
  return `SLIPWAY_GIT_USERNAME_${index}`;
}

function passwordVariable(index: number): string {
  return `SLIPWAY_GIT_PASSWORD_${index}`;
}
