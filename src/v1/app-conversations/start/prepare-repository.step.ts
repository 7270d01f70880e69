import { Injectable } from '@nestjs/common';
import { toHexId } from '../../../common/hex-id.js';
import { SettingsStore } from '../../../settings/settings.store.js';
import { AgentServerCommands } from '../../agent-servers/agent-server.commands.js';
import { gitIdentity } from '../repository/git-identity.js';
import { RepositoryMaker } from '../repository/repository-maker.js';
import { RepositoryPlans } from '../repository/repository-plans.js';
import { shellQuote } from '../repository/shell-quote.js';
import { StartFailure } from './start-failure.js';
import type { StartTarget } from './start-targets.js';
import { tailOf } from './tail-of.js';

const QUICK_SECONDS = 60;

/** PREPARING_REPOSITORY: the folder that the agent works in, with the repository in it. Repeatable. */
@Injectable()
export class PrepareRepositoryStep {
  constructor(
    private readonly commands: AgentServerCommands,
    private readonly plans: RepositoryPlans,
    private readonly maker: RepositoryMaker,
    private readonly settings: SettingsStore,
  ) {}

  /**
   * @returns absolute folder that the agent works in
   * @throws StartFailure
   */
  async run(start: StartTarget, signal: AbortSignal): Promise<string> {
    const { task, target, dialect } = start;
    const { sandbox_id: givenSandbox, selected_repository: repository } = task.request;
    if (task.workingDir !== null) {
      // The parent's; it prepared that.
      return task.workingDir;
    }
    if (repository === null) {
      return this.workingFolder(start, givenSandbox === null, signal);
    }
    const base = await this.workingFolder(start, false, signal);
    // A sandbox with a life before this conversation may have a folder of that name.
    const folder = givenSandbox === null ? base : `${base}/${toHexId(task.appConversationId)}`;
    const plan = await this.plans.plan(task, repository, folder);
    await this.maker.make(target, dialect, plan, signal);
    return plan.folder;
  }

  /** Our agent server is where it works already; others are told by the specification. */
  private async workingFolder(
    { task, target, dialect, specWorkingDir }: StartTarget,
    init: boolean,
    signal: AbortSignal,
  ): Promise<string> {
    const enter =
      dialect === 'stock' && specWorkingDir !== null
        ? [`mkdir -p -- ${shellQuote(specWorkingDir)}`, `cd -- ${shellQuote(specWorkingDir)}`]
        : [];
    const { name, email } = gitIdentity(
      (await this.settings.find(task.userId)) ?? { git_user_name: null, git_user_email: null },
    );
    const makeRepository = [
      // In a sandbox without git an agent may have other work.
      'if command -v git >/dev/null; then',
      '  [ -e .git ] || git init --quiet >&2',
      `  git config user.name ${shellQuote(name)} && git config user.email ${shellQuote(email)}`,
      'fi',
    ];
    const { exitCode, stdout, output } = await this.commands.run(target, {
      command: ['set -e', ...enter, ...(init ? makeRepository : []), 'pwd -P'].join('\n'),
      cwd: null,
      timeoutSeconds: QUICK_SECONDS,
      signal,
    });
    const folder = stdout.trim().split('\n').at(-1) ?? '';
    if (exitCode !== 0 || !folder.startsWith('/')) {
      throw new StartFailure(`The working folder could not be made in the sandbox.\n${tailOf(output)}`);
    }
    return folder;
  }
}
