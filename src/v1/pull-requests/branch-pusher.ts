import { Injectable } from '@nestjs/common';
import type { GitPushResponse } from '@slipway/agent-protocol/git.js';
import { DomainError } from '../../common/errors/domain-error.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { RepositoryAccessService } from '../../git-providers/repository-access.service.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { OutsideCredentials } from '../app-conversations/outside-credentials/outside-credentials.js';
import { RunningConversations } from '../app-conversations/running-conversations.js';
import type { StartTask } from '../app-conversations/start-task.entity.js';
import { pushedFork } from '../app-conversations/work-places/work-place.js';
import { requirePushable, WorkPlaces } from '../app-conversations/work-places/work-places.service.js';
import type { RunningSandbox } from '../sandboxes/sandbox.queries.js';
import type { PushedBranchDto } from './pull-request.dto.js';

interface PlannedPush {
  /** Of the conversation. */
  id: string;
  userId: string;
  repository: string;
  provider: ProviderType | null;
  start: StartTask | null;
  directory: string;
  /** Null: the one that is checked out. */
  branch: string | null;
}

/** What the agent server says; null: it is a stock one, which pushes nothing for us, so the agent has to have done that. */
type Pushed = GitPushResponse | null;

/** Pushes branches from the sandboxes of conversations, with the tokens of their users, to where these may push. */
@Injectable()
export class BranchPusher {
  constructor(
    private readonly running: RunningConversations,
    private readonly places: WorkPlaces,
    private readonly repositories: RepositoryAccessService,
    private readonly outside: OutsideCredentials,
    private readonly agentServers: AgentServerClient,
  ) {}

  /**
   * Resumes the sandbox, and pushes to a fork of the user's what may not be pushed to the repository.
   * @returns the branch, unless the agent server does not say, and the fork that has it
   * @throws DomainError conflict when it cannot be pushed; what `RunningConversations.change` throws
   */
  async push(planned: PlannedPush): Promise<{ branch: string | null; fork: string | null }> {
    const { id, userId, repository, start } = planned;
    const place = start?.request.work_place;
    requirePushable(repository, place);
    await this.running.wake(userId, id, 'a pull request');
    const pushing = { fork: pushedFork(place) };
    const pushed = await this.audited(planned, { repository }, async (target) => {
      const first = await this.pushTo(target, planned, pushing.fork);
      const { denied = false, branch = null } = first ?? {};
      if (!denied || branch === null) {
        return first;
      }
      const name = await this.places.elsewhere({ ...planned, branch });
      const second = await this.pushTo(target, planned, name);
      pushing.fork = name === repository ? null : name;
      return second;
    });
    return { branch: pushed?.branch ?? null, ...pushing };
  }

  /** Pushes a branch whose push was denied. @throws DomainError as `push` */
  async pushDenied(planned: PlannedPush & { branch: string }): Promise<PushedBranchDto> {
    const place = await this.places.elsewhere(planned);
    const details = { repository: planned.repository, fork: place };
    const pushed = await this.audited(planned, details, (target) => this.pushTo(target, planned, place));
    return { repository: place, output: `Pushed to ${place}. ${pushed?.output ?? ''}`.trim() };
  }

  private async audited(
    { id, userId }: PlannedPush,
    details: { repository: string; fork?: string },
    push: (target: RunningSandbox) => Promise<Pushed>,
  ): Promise<Pushed> {
    const pushing: { result: Pushed } = { result: null };
    const entry = { action: 'conversation.open_pull_request', details } as const;
    await this.running.change(userId, id, entry, async (target) => {
      pushing.result = await push(target);
    });
    if (pushing.result?.ok === false) {
      throw new DomainError('conflict', `The branch cannot be pushed: ${pushing.result.output}`);
    }
    return pushing.result;
  }

  /** @param to where it goes instead of where the clone leads; null: there */
  private async pushTo(
    target: RunningSandbox,
    { userId, repository, provider, directory, branch }: PlannedPush,
    to: string | null,
  ): Promise<Pushed> {
    const access = await this.repositories.cloneAccess(userId, provider, to ?? repository);
    const concealer = await this.outside.concealer(target);
    return await this.agentServers.push(target, {
      url: access.url,
      directory,
      branch,
      ...(to !== null && { to: access.url }),
      username: access.credential?.username ?? null,
      password: await concealer.text(access.credential?.password ?? null, [access.url]),
      bearer: access.credential?.bearer,
    });
  }
}
