import { Injectable } from '@nestjs/common';
import { AuditRepository } from '../../audit/audit.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import type { OpenedChangeRequest } from '../../git-providers/git-provider.js';
import { RepositoryAccessService } from '../../git-providers/repository-access.service.js';
import { toHexId } from '../../common/identifiers.js';
import { WebhookDeliveryRepository } from '../../outbound-webhooks/webhook-delivery.repository.js';
import { ConversationRepository } from '../app-conversations/conversation.repository.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.queries.js';
import type { OpenPullRequestDto } from './pull-request.dto.js';

/** Opens pull requests for agents, which never see the git token. */
@Injectable()
export class PullRequestsService {
  constructor(
    private readonly conversations: ConversationRepository,
    private readonly repositories: RepositoryAccessService,
    private readonly webhooks: WebhookDeliveryRepository,
    private readonly audit: AuditRepository,
  ) {}

  /**
   * Opens a pull request with the user's token, adds it to the conversation and notifies webhook endpoints.
   * @throws DomainError not_found for a conversation of another sandbox, conflict without a repository; what
   *   `RepositoryAccessService.openChangeRequest` throws
   */
  async open(sandbox: SandboxKeyHolder, request: OpenPullRequestDto): Promise<OpenedChangeRequest> {
    const { conversation_id: id } = request;
    const conversation = await this.conversations.findRepository(id, sandbox);
    if (!conversation) {
      throw new DomainError('not_found', 'not_found', 'The sandbox has no conversation with this id.');
    }
    const { selectedRepository: repository, gitProvider: provider } = conversation;
    if (repository === null) {
      throw new DomainError('conflict', 'conflict', 'The conversation has no repository.');
    }
    const opened = await this.repositories.openChangeRequest(sandbox.userId, provider, {
      repository,
      sourceBranch: request.source_branch,
      targetBranch: request.target_branch ?? null,
      title: request.title,
      body: request.body,
      draft: request.draft ?? false,
    });
    const pullRequest = {
      number: opened.number,
      url: opened.url,
      title: request.title,
      source_branch: request.source_branch,
    };
    await this.conversations.transaction(async (manager) => {
      if (await this.conversations.addPullRequest(manager, id, pullRequest)) {
        await this.audit.append(manager, {
          action: 'conversation.open_pull_request',
          resourceId: toHexId(id),
          ownerId: sandbox.userId,
          details: { repository, number: opened.number },
        });
        await this.webhooks.publish(manager, sandbox.userId, {
          type: 'pull_request.opened',
          data: { conversation_id: toHexId(id), repository, number: opened.number, url: opened.url },
        });
      }
    });
    return opened;
  }
}
