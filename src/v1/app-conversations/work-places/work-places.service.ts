import { Injectable } from '@nestjs/common';
import { jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import type { Forks } from '@slipway/git-providers/forks.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { nullIfNotFound } from '@slipway/git-providers/provider-errors.js';
import { RepositoryAccessService } from '../../../git-providers/repository-access.service.js';
import { SettingsRepository } from '../../../settings/settings.repository.js';
import { gitMode, type StartRequest, type StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { type ForkHead, type ForkPolicy, whyNothing, type WorkPlace, workPlaceNote } from './work-place.js';

interface DeniedPush {
  userId: string;
  repository: string;
  provider: ProviderType | null;
  branch: string;
  /** The start task; null for a conversation that another client has begun. */
  start: StartTask | null;
}

/** Decides where conversations work: in the repository, in the fork of a pull request, or in a fork of the user's own. */
@Injectable()
export class WorkPlaces {
  constructor(
    private readonly access: RepositoryAccessService,
    private readonly tasks: StartTaskRepository,
    private readonly settings: SettingsRepository,
  ) {}

  /** Returns null when it is the repository as usual, when there is no token, or when the host does not say. */
  async find(
    { userId, request }: Pick<StartTask, 'userId' | 'request'>,
    policy: ForkPolicy,
  ): Promise<WorkPlace | null> {
    const { selected_repository: repository, git_provider: provider } = request;
    const number = changeRequestOf(request);
    const mayWrite = gitMode(request) === 'write';
    if (repository === null || (number === null && !mayWrite)) {
      return null;
    }
    const asked = { provider, repository, waits: false };
    try {
      return await this.access.forks(userId, asked, async (forks) => {
        const change = number === null ? null : await forks.head(repository, number);
        const isWithin = change?.repository?.toLowerCase() === repository.toLowerCase();
        const head = change === null || number === null || isWithin ? null : { ...change, number };
        const place = await placeOf(forks, repository, head, policy);
        if (head === null && (place.push === 'repository' || !mayWrite)) {
          return null;
        }
        return mayWrite ? place : { ...place, push: 'none' as const, because: 'git' as const };
      });
    } catch (error) {
      // A host in trouble, which is in the log, holds up no start.
      if (error instanceof DomainError) {
        return null;
      }
      throw error;
    }
  }

  /**
   * Returns where to push a branch whose push is denied, and makes the user's fork if there is none.
   * @returns full name of a repository
   * @throws DomainError conflict with what the user can do
   */
  async elsewhere({ userId, repository, provider, branch, start }: DeniedPush): Promise<string> {
    const place = start?.request.work_place;
    requirePushable(repository, place);
    const head = place?.head ?? null;
    if (head !== null && [head.branch, head.targetBranch].includes(branch)) {
      const detail = `There is no right to push to ${head.repository ?? repository}: commit to a branch of another name than ${branch}.`;
      throw new DomainError('conflict', detail);
    }
    const policy = forkPolicy(start?.request ?? {}, await this.settings.effective(userId));
    const asked = { provider, repository, waits: true };
    const name = await this.access.forks(userId, asked, async (forks) => {
      const { push, fork } = await forks.rights(repository);
      if (push && head === null) {
        const detail = `The user may push to ${repository}, but its host denies it: see whether the git token may write.`;
        throw new DomainError('conflict', detail);
      }
      if (!push && (policy === 'never' || !fork)) {
        throw new DomainError('conflict', whyNothing(repository, policy === 'never' ? policy : 'forbidden'));
      }
      return push ? repository : await forks.own(repository);
    });
    if (start !== null && name !== repository) {
      await this.tasks.amend(start.id, { work_place: { head, push: 'fork', fork: name } });
    }
    return name;
  }
}

/** What a start says, else the settings. */
export function forkPolicy(
  { fork }: Partial<Pick<StartRequest, 'fork'>>,
  settings: { fork: string | null } | null,
): ForkPolicy {
  return fork ?? (settings?.fork === 'never' ? 'never' : 'auto');
}

/** @throws DomainError conflict where nothing can be pushed */
export function requirePushable(repository: string, place: WorkPlace | null | undefined): void {
  if (place?.push === 'none' && place.because !== 'git') {
    throw new DomainError('conflict', workPlaceNote(repository, place));
  }
}

/** Returns the number of the pull request that a start is about, else null; a chosen branch takes precedence over it. */
export function changeRequestOf({
  suggested_task: task,
  selected_branch: branch,
  change_request: ofEvent,
}: StartRequest): number | null {
  const type = jsonText(task, 'task_type');
  if (branch !== null || ofEvent !== undefined) {
    return branch === null ? (ofEvent ?? null) : null;
  }
  return type === null || ['OPEN_ISSUE', 'CREATE_MICROAGENT'].includes(type)
    ? null
    : jsonNumber(task, 'issue_number');
}

async function placeOf(
  forks: Forks,
  repository: string,
  head: ForkHead | null,
  policy: ForkPolicy,
): Promise<WorkPlace> {
  const name = head?.repository ?? null;
  const inHead = name === null ? null : await forks.rights(name).catch(nullIfNotFound);
  if (head !== null && inHead === null) {
    return { head: { ...head, repository: null }, push: 'none', because: 'deleted' };
  }
  if (inHead?.push === true) {
    return { head, push: 'head' };
  }
  const { push, fork } = await forks.rights(repository);
  if (push) {
    return { head, push: head?.allowsMaintainers === true ? 'head' : 'repository' };
  }
  if (fork && policy === 'auto') {
    return { head, push: 'fork' };
  }
  return { head, push: 'none', because: fork ? 'never' : 'forbidden' };
}
