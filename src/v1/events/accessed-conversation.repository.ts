import { Injectable } from '@nestjs/common';
import { DataSource, In } from 'typeorm';
import type { AccessedRow } from '../../auth/access.js';
import { AppConversation } from '../app-conversations/conversation.entity.js';

/** Payload: the id of a conversation that others may read than before. */
export const ACCESS_CHANNEL = 'conversation_access';

/** Whose a conversation is, and who reads it. */
@Injectable()
export class AccessedConversationRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** Returns null for an unknown one. */
  async find(id: string): Promise<AccessedRow | null> {
    return (await this.findEach([id])).get(id) ?? null;
  }

  /** By their ids; unknown ones are left out. */
  async findEach(ids: readonly string[]): Promise<Map<string, AccessedRow>> {
    const rows = await this.dataSource.manager.find(AppConversation, {
      select: { id: true, userId: true, visibility: true, gitProvider: true, selectedRepository: true },
      where: { id: In([...ids]) },
    });
    return new Map(rows.map((row) => [row.id, row]));
  }
}
