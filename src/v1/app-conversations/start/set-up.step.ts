import { Injectable } from '@nestjs/common';
import { AgentServerCommands } from '../../agent-servers/agent-server.commands.js';
import { PRE_COMMIT_HOOK, SETUP_SCRIPT } from './setup-scripts.js';
import { StartFailure } from './start-failure.js';
import type { StartTarget } from './start-targets.js';
import { tailOf } from './tail-of.js';

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
