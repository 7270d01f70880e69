import type { GitAccess, GitServerCredential } from '@slipway/agent-protocol/git.js';

/**
 * Variables that give git its user's name and credentials, each for its own server only; credential helpers of files
 * are skipped for that server. No file, argument or address holds the credentials.
 * @see git-config(1), "GIT_CONFIG_COUNT"; gitcredentials(7)
 */
export function gitVariables(
  { credentials, identity }: Pick<GitAccess, 'credentials' | 'identity'>,
  settings: readonly [string, string][] = [],
): Record<string, string> {
  const helpers = credentials.flatMap(({ origin }, index): [string, string][] => [
    // An empty helper drops those before it, our own for the same server included: the last one given counts.
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
  const values = credentials.flatMap(credentialVariables);
  return { ...configVariables([...settings, ...helpers, ...names]), ...Object.fromEntries(values) };
}

/** Texts to mask. Servers receive name and password in one piece, mostly in base64. */
export function gitSecrets(credentials: readonly GitServerCredential[]): string[] {
  return credentials.flatMap(({ username, password }) => [password, `${username}:${password}`]);
}

/** Configuration that overrides that of all files. */
function configVariables(entries: readonly [string, string][]): Record<string, string> {
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return variables.length === 0
    ? {}
    : { GIT_CONFIG_COUNT: String(entries.length), ...Object.fromEntries(variables) };
}

function helperFor(index: number): string {
  const print = `printf 'username=%s\\npassword=%s\\n' "$${usernameVariable(index)}" "$${passwordVariable(index)}"`;
  return `!f() { if [ "$1" = get ]; then ${print}; fi; }; f`;
}

function credentialVariables({ username, password }: GitServerCredential, index: number): [string, string][] {
  return [
    [usernameVariable(index), username],
    [passwordVariable(index), password],
  ];
}

function usernameVariable(index: number): string {
  return `SLIPWAY_GIT_USERNAME_${index}`;
}

function passwordVariable(index: number): string {
  return `SLIPWAY_GIT_PASSWORD_${index}`;
}
