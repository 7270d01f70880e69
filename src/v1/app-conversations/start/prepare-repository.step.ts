import { Injectable } from '@nestjs/common';
import { DomainError, type ErrorKind } from '../../../common/errors/domain-error.js';
import { toHexId } from '../../../common/identifiers.js';
import { type CloneAccess, CloneAccessService } from '../../../git-providers/repository-access.service.js';
import { SettingsRepository } from '../../../settings/settings.repository.js';
import { AgentServerCommands } from '../../agent-servers/agent-server.commands.js';
import { gitIdentity } from '../agent-request/git-access.js';
import type { StartTask } from '../start-task.entity.js';
import type { StartTarget } from './await-sandbox.js';
import { RepositoryMaker, type RepositoryPlan, shellQuote } from './repository-checkout.js';
import { StartFailure, tailOf } from './start-errors.js';

/** These may be over in a moment: the step is tried again. */
const PASSING: readonly ErrorKind[] = ['rate_limited', 'bad_gateway', 'gateway_timeout', 'unavailable'];
const BRANCH_SUFFIX = 8;

/** Finds out where a start's repository is and how git gets at it. */
@Injectable()
export class RepositoryPlans {
  constructor(
    private readonly access: CloneAccessService,
    private readonly settings: SettingsRepository,
  ) {}

  /**
   * @param folder absolute folder of the sandbox in which the repository's own folder is made
   * @throws StartFailure for a repository that cannot be had
   */
  async plan(task: StartTask, name: string, folder: string): Promise<RepositoryPlan> {
    const { url, credential, provider } = await this.findAccess(task, name);
    const row = await this.settings.load(task.userId);
    const { selected_branch: branch } = task.request;
    return {
      provider,
      name,
      url,
      credential: credential && { username: credential.username, password: credential.password },
      folder: `${folder.replace(/\/+$/, '')}/${name.split('/').at(-1) ?? name}`,
      branch,
      // From the conversation's id: a step that is repeated makes the same.
      newBranch:
        branch === null
          ? `openhands-workspace-${toHexId(task.appConversationId).slice(0, BRANCH_SUFFIX)}`
          : null,
      identity: gitIdentity(row ?? { git_user_name: null, git_user_email: null }),
    };
  }

  private async findAccess(task: StartTask, name: string): Promise<CloneAccess> {
    try {
      return await this.access.find(task.userId, task.request.git_provider, name);
    } catch (error) {
      if (error instanceof DomainError && !PASSING.includes(error.kind)) {
        throw new StartFailure(`The repository ${name} cannot be cloned. ${error.message}`, { cause: error });
      }
      throw error;
    }
  }
}

const QUICK_SECONDS = 60;

/** PREPARING_REPOSITORY: the folder that the agent works in, with the repository in it. Repeatable. */
@Injectable()
export class PrepareRepositoryStep {
  constructor(
    private readonly commands: AgentServerCommands,
    private readonly plans: RepositoryPlans,
    private readonly maker: RepositoryMaker,
    private readonly settings: SettingsRepository,
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
      (await this.settings.load(task.userId)) ?? { git_user_name: null, git_user_email: null },
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
