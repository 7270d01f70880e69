import { Injectable } from '@nestjs/common';
import { AgentServerCommands } from '../../agent-servers/agent-server.commands.js';
import type { StartContext } from './await-sandbox.step.js';
import { StartFailure, tailOf } from './start-failure.js';

/**
 * Runs `.openhands/setup.sh` of the repository in the current folder, unless it succeeded before. Waits for an attempt
 * that an earlier worker began: the script never runs twice at the same time.
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
 * Makes `.openhands/pre-commit.sh` the pre-commit hook of the repository in the current folder. An existing hook runs
 * first. Repeatable.
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

const SETUP_TIMEOUT_SECONDS = 600;
const HOOK_TIMEOUT_SECONDS = 60;
/** Exit code of a command that the agent server ended. */
const ENDED = -1;

/** RUNNING_SETUP_SCRIPT and SETTING_UP_GIT_HOOKS: runs what the repository brings along. Repeatable. */
@Injectable()
export class SetUpStep {
  constructor(private readonly commands: AgentServerCommands) {}

  /** @throws StartFailure with the script's last output */
  async runScript({ task, sandbox }: StartContext, signal: AbortSignal): Promise<void> {
    const { exitCode, output } = await this.commands.run(sandbox, {
      command: SETUP_SCRIPT,
      cwd: task.workingDir,
      timeoutSeconds: SETUP_TIMEOUT_SECONDS,
      signal,
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

  /** @throws StartFailure */
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
