import { Injectable } from '@nestjs/common';
import { SETUP_ENVIRONMENT } from '@slipway/agent-protocol/git.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import { AgentSecretsReader } from '../../../settings/secrets/agent-secrets.reader.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
import { OutsideCredentials } from '../outside-credentials/outside-credentials.js';
import { visibleSecrets } from '../start-task.entity.js';
import { StartFailure, tailOf } from './start-failure.js';
import type { StartContext } from './prepare-repository.step.js';

/** What exceeds the limits of one variable, or of all together, does not reach the agent. */
const MAX_VARIABLE = 32_768;
const MAX_ENVIRONMENT = 131_072;

/** Names of the variables that no agent gets, with spaces. */
const SECRETS = 'SLIPWAY_SETUP_SECRETS';

/**
 * Runs the script `$0`, and writes its exports to `$1`; the trap is for scripts that `exit`. Writes only absolute
 * additions to PATH, and calls no program, because the script may have broken PATH.
 */
const CAPTURE = `
__slipway_out=$1 __slipway_secrets=" $${SECRETS} " __slipway_home=$PWD __slipway_base=$PATH
set --
__slipway_path() {
  local IFS=: __slipway_folder __slipway_list=
  set -f
  for __slipway_folder in $1; do
    case $__slipway_folder in /* | "") ;; *) __slipway_folder=$__slipway_home/$__slipway_folder ;; esac
    __slipway_list=$__slipway_list:$__slipway_folder
  done
  printf %q "\${__slipway_list#:}"
}
__slipway_dump() {
  local __slipway_name __slipway_value __slipway_line __slipway_left=${MAX_ENVIRONMENT}
  compgen -e | while IFS= read -r __slipway_name; do
    __slipway_value=\${!__slipway_name}
    case $__slipway_secrets in *" $__slipway_name "*) continue ;; esac
    case $__slipway_name in PWD | OLDPWD | SHLVL | _ | SLIPWAY_* | __slipway_*) continue ;; esac
    [ \${#__slipway_value} -le ${MAX_VARIABLE} ] || continue
    __slipway_line=$__slipway_name=$(printf %q "$__slipway_value")
    case $__slipway_name:$__slipway_value in
      PATH:*:"$__slipway_base")
        __slipway_line=PATH=$(__slipway_path "\${__slipway_value%":$__slipway_base"}")':"$PATH"' ;;
      PATH:"$__slipway_base":*)
        __slipway_line='PATH="$PATH":'$(__slipway_path "\${__slipway_value#"$__slipway_base:"}") ;;
    esac
    __slipway_left=$((__slipway_left - \${#__slipway_line} - 1))
    [ "$__slipway_left" -ge 0 ] || break
    printf '%s\\n' "$__slipway_line"
  done
}
__slipway_before=$(__slipway_dump)
__slipway_save() {
  set +aeuo pipefail
  local __slipway_line
  __slipway_dump | while IFS= read -r __slipway_line; do
    case "
$__slipway_before
" in *"
$__slipway_line
"*) ;; *) printf '%s\\n' "$__slipway_line" ;; esac
  done >"$__slipway_out" 2>/dev/null
}
trap '__slipway_code=$?; __slipway_save; exit $__slipway_code' EXIT
. "$0"
__slipway_code=$?
__slipway_save
exit $__slipway_code
`;

/**
 * Runs `.openhands/setup.sh` unless it succeeded before, and keeps its exports for the agent's shell. Waits for an
 * earlier worker's attempt: the script never runs twice at the same time.
 */
export const SETUP_SCRIPT = `
[ -f .openhands/setup.sh ] || exit 0
folder=$(git rev-parse --absolute-git-dir) || exit
marker=$folder/slipway-setup-done exported=$folder/${SETUP_ENVIRONMENT}
exec 9>"$marker.lock"
if command -v flock >/dev/null; then flock 9; fi
[ -e "$marker" ] && exit 0
capture=$(cat <<'CAPTURE'
${CAPTURE}
CAPTURE
)
rm -f "$exported.new"
bash -c "$capture" .openhands/setup.sh "$exported.new" </dev/null 9>&-
code=$?
if [ "$code" -eq 0 ]; then
  [ ! -f "$exported.new" ] || mv -f "$exported.new" "$exported"
  : >"$marker"
fi
exit "$code"
`;

/** What the setup script gets besides: secrets, and their names, by which none is kept whatever the script makes of it. */
export function setupVariables(secrets: ReadonlyMap<string, string>): Record<string, string> {
  return { ...Object.fromEntries(secrets), [SECRETS]: [...secrets.keys()].join(' ') };
}

/** That git runs for who works in a clone. */
const HOOKS =
  'pre-commit applypatch-msg pre-applypatch post-applypatch pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout post-merge pre-push post-rewrite';

/**
 * Makes `.openhands/pre-commit.sh` the pre-commit hook, after an existing one. Where the repository has a folder of hooks,
 * whose files are often tracked, another one leads to it. Repeatable.
 */
export const PRE_COMMIT_HOOK = `
[ -f .openhands/pre-commit.sh ] || exit 0
given="$(git config --path core.hooksPath)"
ours="$(git rev-parse --absolute-git-dir)/slipway-hooks" || exit
if [ "$given" = "$ours" ]; then exit 0; fi
if [ -n "$given" ]; then
  mkdir -p "$ours" && git config --local slipway.hooksPath "$given" || exit
  cat >"$ours/pre-commit" <<'HOOK' || exit
#!/bin/sh
# slipway: the repository's own hook, then .openhands/pre-commit.sh
name=\${0##*/}
hook="$(git config slipway.hooksPath)/$name"
if [ -x "$hook" ]; then
  [ "$name" = pre-commit ] || exec "$hook" "$@"
  "$hook" "$@" || exit
fi
[ "$name" = pre-commit ] || exit 0
exec bash "$(git rev-parse --show-toplevel)/.openhands/pre-commit.sh" "$@"
HOOK
  chmod 755 "$ours/pre-commit" || exit
  for name in ${HOOKS}; do
    [ -e "$ours/$name" ] || ln -s pre-commit "$ours/$name" || exit
  done
  exec git config --local core.hooksPath "$ours"
fi
hooks="$(git rev-parse --git-path hooks)" && mkdir -p "$hooks" || exit
hook="$hooks/pre-commit"
if [ -e "$hook" ] && ! grep -q 'slipway pre-commit' "$hook"; then mv "$hook" "$hook.local" || exit; fi
cat >"$hook.new" <<'HOOK' || exit
#!/bin/sh
# slipway pre-commit: the repository's own hook, then .openhands/pre-commit.sh
local_hook="$(git rev-parse --git-path hooks)/pre-commit.local"
if [ -x "$local_hook" ]; then "$local_hook" "$@" || exit; fi
exec bash "$(git rev-parse --show-toplevel)/.openhands/pre-commit.sh" "$@"
HOOK
chmod 755 "$hook.new" && mv "$hook.new" "$hook"
`;

const SETUP_TIMEOUT_SECONDS = 600;
const HOOK_TIMEOUT_SECONDS = 60;
/** The agent server ended the command. */
const ENDED = -1;

/** RUNNING_SETUP_SCRIPT and SETTING_UP_GIT_HOOKS. Repeatable. */
@Injectable()
export class SetUpStep {
  constructor(
    private readonly commands: AgentServerCommands,
    private readonly secrets: AgentSecretsReader,
    private readonly outside: OutsideCredentials,
  ) {}

  /** @throws StartFailure with the script's last output */
  async runScript({ task, sandbox, dialect }: StartContext, signal: AbortSignal): Promise<void> {
    const { sandbox_id: given, parent_conversation_id: parent } = task.request;
    // Where an agent may be at work, it could read them.
    const isFirst = given === null && parent === null;
    const env = isFirst ? await dialect.unpublished(() => this.secretsOf(task, sandbox)) : null;
    const { exitCode, output } = await this.commands.run(sandbox, {
      command: SETUP_SCRIPT,
      cwd: task.workingDir,
      timeoutSeconds: SETUP_TIMEOUT_SECONDS,
      signal,
      ...(env !== null && { env }),
    });
    if (exitCode !== 0) {
      const what =
        exitCode === ENDED
          ? `was ended: it may take ${SETUP_TIMEOUT_SECONDS / 60} minutes`
          : `failed with exit code ${exitCode}`;
      throw new StartFailure(
        'setup',
        `The setup script .openhands/setup.sh ${what}.\n${tailOf(output)}`.trim(),
      );
    }
  }

  private async secretsOf(
    { userId, request }: StartContext['task'],
    sandbox: RunningSandbox,
  ): Promise<Record<string, string>> {
    const shown = this.outside.shownSecrets(sandbox);
    return setupVariables(await this.secrets.forSetup(userId, visibleSecrets([request]), shown));
  }

  async installHook({ task, sandbox }: StartContext, signal: AbortSignal): Promise<void> {
    const { exitCode, output } = await this.commands.run(sandbox, {
      command: PRE_COMMIT_HOOK,
      cwd: task.workingDir,
      timeoutSeconds: HOOK_TIMEOUT_SECONDS,
      signal,
    });
    if (exitCode !== 0) {
      throw new StartFailure(
        'setup',
        `.openhands/pre-commit.sh could not be made the pre-commit hook.\n${tailOf(output)}`.trim(),
      );
    }
  }
}
