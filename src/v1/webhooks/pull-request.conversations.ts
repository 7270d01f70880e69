import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ProviderType } from '../../git-providers/git-provider.types.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-keys.js';

/** The repository that a conversation works on. */
export interface ConversationRepository {
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
