import { Injectable } from '@nestjs/common';
import { AgentServerCommands } from '../../agent-servers/agent-server.commands.js';
import type { StartTarget } from './await-sandbox.js';
import { StartFailure, tailOf } from './start-errors.js';

/**
 * Runs `.openhands/setup.sh` of the repository that is the current folder, unless it succeeded before. An attempt that
 * an earlier worker began is waited for: the script never runs twice at the same time.
 */
const SETUP_SCRIPT = `
[ -f .openhands/setup.sh ] || exit 0
marker="$(git rev-parse --absolute-git-dir)/slipway-setup-done" || exit
exec 9>"$marker.lock"
if command -v flock >/dev/null; then flock 9; fi
[ -e "$marker" ] && exit 0
bash .openhands/setup.sh </dev/null 9>&-
code=$?
[ "$code" -eq 0 ] && : >"$marker"
exit "$code"
`;

/**
 * Makes `.openhands/pre-commit.sh` of the repository that is the current folder its pre-commit hook. A hook that is there
 * already goes first. Repeatable.
 */
const PRE_COMMIT_HOOK = `
[ -f .openhands/pre-commit.sh ] || exit 0
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

const SETUP_SECONDS = 600;
const HOOK_SECONDS = 60;
/** How agent servers say that they ended a command. */
const ENDED = -1;

/** RUNNING_SETUP_SCRIPT and SETTING_UP_GIT_HOOKS: what a repository asks for itself. Repeatable. */
@Injectable()
export class SetUpStep {
  constructor(private readonly commands: AgentServerCommands) {}

  /** @throws StartFailure with the script's last output */
  async runScript({ task, target }: StartTarget, signal: AbortSignal): Promise<void> {
    const { exitCode, output } = await this.commands.run(target, {
      command: SETUP_SCRIPT,
      cwd: task.workingDir,
      timeoutSeconds: SETUP_SECONDS,
      signal,
    });
    if (exitCode !== 0) {
      const what =
        exitCode === ENDED
          ? `was ended: it may take ${SETUP_SECONDS / 60} minutes`
          : `failed with exit code ${exitCode}`;
      throw new StartFailure(`The setup script .openhands/setup.sh ${what}.\n${tailOf(output)}`.trim());
    }
  }

  /** @throws StartFailure */
  async installHook({ task, target }: StartTarget, signal: AbortSignal): Promise<void> {
    const { exitCode, output } = await this.commands.run(target, {
      command: PRE_COMMIT_HOOK,
      cwd: task.workingDir,
      timeoutSeconds: HOOK_SECONDS,
      signal,
    });
    if (exitCode !== 0) {
      throw new StartFailure(
        `.openhands/pre-commit.sh could not be made the pre-commit hook.\n${tailOf(output)}`.trim(),
      );
    }
  }
}
