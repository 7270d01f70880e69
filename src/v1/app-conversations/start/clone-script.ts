import type { GitIdentity } from '@slipway/agent-protocol/git.js';

interface CloneScriptPlan {
  /** http(s), without credentials. */
  url: string;
  /** Absolute. */
  folder: string;
  /** Null: the default branch. */
  branch: string | null;
  /** Null: none is made. */
  newBranch: string | null;
  identity: GitIdentity;
}

/** Makes a text one word of a POSIX shell. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Credential helper that reads user name and password from the environment of this one command. */
const CREDENTIAL_HELPER = `!f() { [ "$1" = get ] && printf 'username=%s\\npassword=%s\\n' "$SLIPWAY_GIT_USERNAME" "$SLIPWAY_GIT_PASSWORD"; }; f`;

/** What our own commands tell the user, among the output of git. */
export const NOTICE_LINE = /^slipway: (.+)$/gm;

/** Where the default branch of a remote does not exist, git checks out nothing. */
const TAKE_ANY_BRANCH = `if ! git rev-parse --verify --quiet HEAD >/dev/null; then
  for name in main master "$(git for-each-ref --sort=-committerdate --count=1 --format='%(refname:lstrip=3)' refs/remotes/origin)" ''; do
    if [ -z "$name" ]; then echo 'slipway: The repository has no branch yet: its folder is empty.'; break; fi
    if git rev-parse --verify --quiet "refs/remotes/origin/$name" >/dev/null; then
      git checkout --quiet -B "$name" "refs/remotes/origin/$name"
      echo "slipway: The default branch of the repository does not exist: $name is checked out."
      break
    fi
  done
fi`;

/**
 * Commands for bash that clone a repository where an agent server has no route for it. The clone is made beside its
 * folder and then renamed: it exists as a whole or not at all, and the script can be repeated.
 *
 * @param secretFile file with user name and password on a line each, which is removed before anything else; null: clones
 *   anonymously
 */
export function cloneScript(
  { url, folder, branch, newBranch, identity }: CloneScriptPlan,
  secretFile: string | null,
): string {
  const target = shellQuote(folder);
  const helper = secretFile === null ? '' : ` -c credential.helper=${shellQuote(CREDENTIAL_HELPER)}`;
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
    ...(branch === null ? [TAKE_ANY_BRANCH] : []),
    ...(newBranch === null ? [] : [`git checkout --quiet -b ${shellQuote(newBranch)}`]),
    `git config user.name ${shellQuote(identity.name)}`,
    `git config user.email ${shellQuote(identity.email)}`,
    `cd /`,
    `rmdir ${target} 2>/dev/null || true`,
    `[ ! -e ${target} ] || { echo "the folder has other content" >&2; exit 1; }`,
    `mv "$new" ${target}`,
    // The folder may belong to another user than the one who works in it.
    `git config --global --get-all safe.directory | grep -Fqx -- ${target} || git config --global --add safe.directory ${target} || true`,
  ].join('\n');
}
