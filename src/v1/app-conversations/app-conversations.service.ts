import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { parseHexId } from '../../common/hex-id.js';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import { RunningSandboxes } from '../sandboxes/running-sandboxes.js';
import { AppConversation } from './app-conversation.entity.js';
import type { ConversationRow } from './conversation-row.js';
import { ConversationsReader } from './conversations.reader.js';
import type { UpdateConversationDto } from './dto/update-conversation.dto.js';
import { unknownConversation } from './unknown-conversation.js';

/** A user's conversations and what is noted about them. */
@Injectable()
export class AppConversationsService {
  private readonly logger = new Logger(AppConversationsService.name);

  constructor(
    @InjectRepository(AppConversation) private readonly conversations: Repository<AppConversation>,
    private readonly reader: ConversationsReader,
    private readonly running: RunningSandboxes,
    private readonly agentServers: AgentServerClient,
  ) {}

  /** In the order of the ids; null for each that is unknown, somebody else's, or no id at all. */
  async findAll(userId: string, givenIds: readonly string[]): Promise<(ConversationRow | null)[]> {
    const ids = givenIds.map(parseHexId);
    const found = await this.reader.findAll(
      userId,
      ids.filter((id) => id !== null),
    );
    return ids.map((id) => (id === null ? null : (found.get(id) ?? null)));
  }

  /**
   * Changes what is given, and answers the conversation as it is then.
   *
   * @throws DomainError not_found
   */
  async update(userId: string, givenId: string, change: UpdateConversationDto): Promise<ConversationRow> {
    const id = parseHexId(givenId);
    const { title, public: isPublic, selected_repository: repository, selected_branch: branch } = change;
    const values = {
      ...(title !== undefined && { title, titleIsUsers: title !== null }),
      ...(isPublic !== undefined && { public: isPublic }),
      ...(repository !== undefined && { selectedRepository: repository }),
      ...(branch !== undefined && { selectedBranch: branch }),
      ...(change.git_provider !== undefined && { gitProvider: change.git_provider }),
    };
    if (id !== null && Object.keys(values).length > 0) {
      await this.conversations.update({ id, userId }, values);
    }
    const row = id === null ? null : await this.reader.find(userId, id);
    if (row === null) {
      throw unknownConversation();
    }
    if (typeof title === 'string') {
      this.rename(row, title).catch((error: unknown) => {
        this.logger.warn('the agent server does not know the new title', {
          conversation_id: row.id,
          error: String(error),
        });
      });
    }
    return row;
  }

  /** The agent server shows the title to those who ask it directly; ours is the one that counts, so nobody waits. */
  private async rename(row: ConversationRow, title: string): Promise<void> {
    const target = await this.running.target(row.sandbox_id);
    if (target) {
      await this.agentServers.renameConversation(target, row.id, title);
    }
  }
}
