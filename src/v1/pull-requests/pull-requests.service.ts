import { Injectable } from '@nestjs/common';
import { textHead } from '@slipway/common/well-formed-text.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { withoutCommands } from '@slipway/git-providers/git-provider.js';
import type { OpenedChangeRequest, ProviderType } from '@slipway/git-providers/git-provider.js';
import { RepositoryAccessService } from '../../git-providers/repository-access.service.js';
import { parseHexId, toHexId } from '@slipway/common/identifiers.js';
import { WebhookDeliveryRepository } from '../../outbound-webhooks/webhook-delivery.repository.js';
import { gitMode, type StartTask } from '../app-conversations/start-task.entity.js';
import { ConversationQueries } from '../app-conversations/conversation.queries.js';
import { ConversationRepository } from '../app-conversations/conversation.repository.js';
import { FollowedPullRequestRepository } from '../app-conversations/followed/followed-pull-request.repository.js';
import { StartTaskRepository } from '../app-conversations/start-task.repository.js';
import { unknownToSandbox } from '../events/events.service.js';
import { pushedFork } from '../app-conversations/work-places/work-place.js';
import { requirePushable } from '../app-conversations/work-places/work-places.service.js';
import { noSandboxKey, type SandboxKeyHolder } from '../sandboxes/sandbox-key.guard.js';
import {
  MAX_PULL_REQUEST_TITLE,
  type OpenConversationPullRequestDto,
  type OpenPullRequestDto,
  type PushBranchDto,
  type PushedBranchDto,
} from './pull-request.dto.js';
import { BranchPusher } from './branch-pusher.js';

interface PlannedPullRequest {
  id: string;
  userId: string;
  repository: string;
  provider: ProviderType | null;
  /** Full name of the fork that has the source branch; null: the repository has it. */
  fork: string | null;
  request: Omit<OpenPullRequestDto, 'conversation_id'>;
}

/** Opens pull requests for users, and for agents, which never see the git token. */
@Injectable()
export class PullRequestsService {
  constructor(
    private readonly conversations: ConversationRepository,
    private readonly queries: ConversationQueries,
    private readonly starts: StartTaskRepository,
    private readonly pusher: BranchPusher,
    private readonly repositories: RepositoryAccessService,
    private readonly followed: FollowedPullRequestRepository,
    private readonly webhooks: WebhookDeliveryRepository,
    private readonly audit: AuditRepository,
  ) {}

  /**
   * Opens a pull request for the agent of a sandbox, with the user's token.
   * @throws DomainError unauthorized unless the sandbox runs, not_found for a conversation of another sandbox, forbidden for
   *   one that may not push, conflict without a repository; what `RepositoryAccessService.changeRequests` throws
   */
  async openForAgent(sandbox: SandboxKeyHolder, given: OpenPullRequestDto): Promise<OpenedChangeRequest> {
    const { conversation_id: id, body, ...members } = given;
    const { repository, provider, start } = await this.ofSandbox(sandbox, id);
    const place = start?.request.work_place;
    requirePushable(repository, place);
    const request = { ...members, body: withoutCommands(body) };
    return this.open({ id, userId: sandbox.userId, repository, provider, fork: pushedFork(place), request });
  }

  /**
   * Pushes a branch whose push was denied to where the user may push, which may be a fork of theirs.
   * @throws DomainError as `openForAgent`, and as `BranchPusher.pushDenied`
   */
  async pushForAgent(
    sandbox: SandboxKeyHolder,
    { conversation_id: id, branch, directory }: PushBranchDto,
  ): Promise<PushedBranchDto> {
    const { userId } = sandbox;
    return await this.pusher.pushDenied({
      id,
      userId,
      ...(await this.ofSandbox(sandbox, id)),
      directory,
      branch,
    });
  }

  private async ofSandbox(
    sandbox: SandboxKeyHolder,
    id: string,
  ): Promise<{ repository: string; provider: ProviderType | null; start: StartTask | null }> {
    if (!sandbox.running) {
      throw noSandboxKey();
    }
    const conversation = await this.conversations.find(sandbox.userId, id);
    if (conversation?.sandboxId !== sandbox.sandboxId) {
      throw unknownToSandbox();
    }
    const start = await this.requireWrite(sandbox.userId, id);
    const { selectedRepository, gitProvider: provider } = conversation;
    return { repository: requireRepository(selectedRepository), provider, start };
  }

  /** Returns the start of a conversation whose agent wants to push. @throws DomainError forbidden when it may not */
  async requireWrite(userId: string, givenId: string): Promise<StartTask | null> {
    const id = parseHexId(givenId);
    const start = id === null ? null : await this.starts.ofConversation(userId, id);
    const git = gitMode(start?.request ?? {});
    if (git !== 'write') {
      const detail = `The conversation was started with git: ${git}, so its agent opens no pull request.`;
      throw new DomainError('forbidden', detail);
    }
    return start;
  }

  /**
   * Pushes the branch from the sandbox, which is resumed for it, and opens a pull request.
   * @throws DomainError as `openForAgent`, and as `BranchPusher.push`
   */
  async openForUser(
    userId: string,
    givenId: string,
    request: OpenConversationPullRequestDto,
  ): Promise<OpenedChangeRequest> {
    const conversation = await this.queries.get(userId, givenId);
    const { id, git_provider: provider, working_dir: directory } = conversation;
    const repository = requireRepository(conversation.selected_repository);
    const start = await this.starts.ofConversation(userId, id);
    const branch = request.source_branch ?? null;
    const pushed = await this.pusher.push({ id, userId, repository, provider, start, directory, branch });
    return this.open({
      id,
      userId,
      repository,
      provider,
      fork: pushed.fork,
      request: {
        source_branch: requireBranch(pushed.branch ?? branch ?? conversation.working_branch),
        target_branch: request.target_branch ?? null,
        title: request.title ?? textHead(conversation.title ?? repository, MAX_PULL_REQUEST_TITLE),
        body: request.body ?? '',
        draft: request.draft ?? false,
      },
    });
  }

  /** Opens it, adds it to the conversation and notifies webhook endpoints. */
  private async open(planned: PlannedPullRequest): Promise<OpenedChangeRequest> {
    const { id, userId, repository, provider, fork, request } = planned;
    const wanted = {
      repository,
      sourceBranch: request.source_branch,
      targetBranch: request.target_branch ?? null,
      title: request.title,
      body: request.body,
      draft: request.draft ?? false,
      ...(fork !== null && { fork }),
    };
    const opened = await this.repositories.changeRequests(userId, provider, repository, (changes) =>
      changes.open(wanted),
    );
    const pullRequest = {
      number: opened.number,
      url: opened.url,
      title: request.title,
      source_branch: request.source_branch,
    };
    await this.conversations.transaction(async (manager) => {
      if (await this.conversations.addPullRequest(manager, id, pullRequest)) {
        const start = await this.starts.ofConversation(userId, id, manager);
        await this.audit.append(manager, {
          action: 'conversation.open_pull_request',
          resourceId: toHexId(id),
          ownerId: userId,
          details: { repository, number: opened.number, ...start?.request.cause },
        });
        await this.webhooks.publish(manager, userId, {
          type: 'pull_request.opened',
          data: { conversation_id: toHexId(id), repository, number: opened.number, url: opened.url },
        });
      }
    });
    await this.followed.wake(userId, { repository, numbers: [opened.number], shas: [] });
    return opened;
  }
}

function requireRepository(repository: string | null): string {
  if (repository === null) {
    throw new DomainError('conflict', 'The conversation has no repository.');
  }
  return repository;
}

/** The stock agent server pushes nothing for us, and names no branch. */
function requireBranch(branch: string | null): string {
  if (branch === null) {
    throw new DomainError(
      'conflict',
      'Name the branch as source_branch: this agent server does not say which one is checked out.',
    );
  }
  return branch;
}
