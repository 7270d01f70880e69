import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { DomainError } from '../../common/errors/domain-error.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { OpenedChangeRequest, ProviderType } from '../../git-providers/git-provider.js';
import { ChangeRequestsService } from '../../git-providers/repository-access.service.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox.queries.js';
import type { OpenPullRequestDto } from './pull-request.dto.js';

/** The repository that a conversation works on. */
interface ConversationRepository {
  selected_repository: string | null;
  git_provider: ProviderType | null;
}

const FIND = new NamedStatement<ConversationRepository>(
  'pull_request_conversation',
  `SELECT selected_repository, git_provider FROM app_conversations
   WHERE id = $1 AND sandbox_id = $2 AND user_id = $3`,
);

/** Two requests at once may bring the same number; the row is looked at again when the first has written it. */
const ADD_NUMBER = `
  UPDATE app_conversations SET pr_number = array_append(pr_number, $2), updated_at = now()
  WHERE id = $1 AND NOT ($2 = ANY (pr_number))`;

/** What opening a pull request has to know of conversations, and changes in them. */
@Injectable()
export class PullRequestConversations {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** A conversation of that sandbox and its user; null when there is none with this id. */
  async find(id: string, { sandboxId, userId }: SandboxKeyHolder): Promise<ConversationRepository | null> {
    const [row] = await FIND.run(this.dataSource, [id, sandboxId, userId]);
    return row ?? null;
  }

  /** Adds the number of a pull request, once. */
  async addNumber(id: string, number: number): Promise<void> {
    await this.dataSource.query(ADD_NUMBER, [id, number]);
  }
}

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
