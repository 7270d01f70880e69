import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { AccessedRow } from '../../auth/access.js';

/** Payload: the id of a conversation that others may read than before. */
export const ACCESS_CHANNEL = 'conversation_access';

const ACCESSED = `
  SELECT id, user_id AS "userId", visibility, git_provider AS "gitProvider", selected_repository AS "selectedRepository"
  FROM app_conversations WHERE id = ANY ($1::uuid[])`;

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
    const rows = await this.dataSource.query<(AccessedRow & { id: string })[]>(ACCESSED, [ids]);
    return new Map(rows.map((row) => [row.id, row]));
  }
}
