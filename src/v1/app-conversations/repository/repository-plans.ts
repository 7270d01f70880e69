import { Injectable } from '@nestjs/common';
import { DomainError, type ErrorKind } from '../../../common/errors/domain-error.js';
import { toHexId } from '../../../common/hex-id.js';
import { CloneAccessService, type CloneAccess } from '../../../git-providers/clone-access.service.js';
import { SettingsStore } from '../../../settings/settings.store.js';
import type { StartTask } from '../start-task.entity.js';
import { StartFailure } from '../start/start-failure.js';
import { gitIdentity } from './git-identity.js';
import type { RepositoryPlan } from './repository-plan.js';

/** These may be over in a moment: the step is tried again. */
const PASSING: readonly ErrorKind[] = ['rate_limited', 'bad_gateway', 'gateway_timeout', 'unavailable'];
const BRANCH_SUFFIX = 8;

/** Finds out where a start's repository is and how git gets at it. */
@Injectable()
export class RepositoryPlans {
  constructor(
    private readonly access: CloneAccessService,
    private readonly settings: SettingsStore,
  ) {}

  /**
   * @param folder absolute folder of the sandbox in which the repository's own folder is made
   * @throws StartFailure for a repository that cannot be had
   */
  async plan(task: StartTask, name: string, folder: string): Promise<RepositoryPlan> {
    const { url, credential, provider } = await this.findAccess(task, name);
    const row = await this.settings.find(task.userId);
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
