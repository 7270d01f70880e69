import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { ChangeRequestsService } from '../../git-providers/change-requests.service.js';
import type { OpenedChangeRequest } from '../../git-providers/git-provider.types.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-keys.js';
import type { OpenPullRequestDto } from './dto/open-pull-request.dto.js';
import { PullRequestConversations } from './pull-request.conversations.js';

/** Opens pull requests for agents, which never see the token that it takes. */
@Injectable()
export class PullRequestsService {
  constructor(
    private readonly conversations: PullRequestConversations,
    private readonly changeRequests: ChangeRequestsService,
  ) {}

  /**
   * Opens one in the repository of a conversation, with the token of its owner, and notes its number there.
   *
   * @throws DomainError not_found for a conversation that is not the sandbox's, conflict when it has no repository, else
   *   as `ChangeRequestsService.open` does
   */
  async open(sandbox: SandboxKeyHolder, request: OpenPullRequestDto): Promise<OpenedChangeRequest> {
    const { conversation_id: id } = request;
    const conversation = await this.conversations.find(id, sandbox);
    if (!conversation) {
      throw new DomainError('not_found', 'not_found', 'The sandbox has no conversation with this id.');
    }
    const { selected_repository: repository, git_provider: provider } = conversation;
    if (repository === null) {
      throw new DomainError('conflict', 'conflict', 'The conversation has no repository.');
    }
    const opened = await this.changeRequests.open(sandbox.userId, provider, {
      repository,
      sourceBranch: request.source_branch,
      targetBranch: request.target_branch ?? null,
      title: request.title,
      body: request.body,
      draft: request.draft ?? false,
    });
    await this.conversations.addNumber(id, opened.number);
    return opened;
  }
}
