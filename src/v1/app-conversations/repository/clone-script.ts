import type { RepositoryPlan } from './repository-plan.js';
import { shellQuote } from './shell-quote.js';

/** Answers git from the environment of this one command. */
const HELPER = `!f() { [ "$1" = get ] && printf 'username=%s\\npassword=%s\\n' "$SLIPWAY_GIT_USERNAME" "$SLIPWAY_GIT_PASSWORD"; }; f`;

/**
 * Commands for bash that make a repository where an agent server has no route for that. It is made beside its folder
 * and then renamed, so it is there as a whole or not at all, and the script can be repeated.
 *
 * @param secretFile file with user name and password in a line each, which is removed before anything else; null:
 *   anonymously
 */
export function cloneScript(
  { url, folder, branch, newBranch, identity }: Omit<RepositoryPlan, 'credential' | 'provider' | 'name'>,
  secretFile: string | null,
): string {
  const target = shellQuote(folder);
  const helper = secretFile === null ? '' : ` -c credential.helper=${shellQuote(HELPER)}`;
  const wanted = branch === null ? '' : ` --branch ${shellQuote(branch)}`;
  return [
    'set -e',
    ...(secretFile === null
      ? []
      : [
          `{ IFS= read -r SLIPWAY_GIT_USERNAME; IFS= read -r SLIPWAY_GIT_PASSWORD; } <${shellQuote(secretFile)}`,
          `rm -f ${shellQuote(secretFile)}`,
          'export SLIPWAY_GIT_USERNAME SLIPWAY_GIT_PASSWORD',
        ]),
    'export GIT_TERMINAL_PROMPT=0 LC_ALL=C',
    `[ -e ${target}/.git ] && exit 0`,
    `new=${target}.slipway-new`,
    'rm -rf "$new"',
    `git -c credential.helper=${helper} clone --no-progress${wanted} -- ${shellQuote(url)} "$new"`,
    `cd "$new"`,
    ...(newBranch === null ? [] : [`git checkout --quiet -b ${shellQuote(newBranch)}`]),
    `git config user.name ${shellQuote(identity.name)}`,
    `git config user.email ${shellQuote(identity.email)}`,
    `cd /`,
    `rmdir ${target} 2>/dev/null || true`,
    `[ ! -e ${target} ] || { echo "the folder has other content" >&2; exit 1; }`,
    `mv "$new" ${target}`,
    // The folder's owner may be another user than the one who works in it.
    `git config --global --get-all safe.directory | grep -Fqx -- ${target} || git config --global --add safe.directory ${target} || true`,
  ].join('\n');
}
