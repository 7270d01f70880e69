import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ConversationStatus } from '../../../agent-protocol/conversation-info.js';
import { NamedStatement } from '../../../database/named-statement.js';

/** A start gives its conversation what it needs itself. */
const WAITING = `
  s.status = 'RUNNING' AND c.sandbox_generation < s.generation AND NOT EXISTS (
    SELECT FROM app_conversation_start_tasks t
    WHERE t.app_conversation_id = c.id AND t.status NOT IN ('READY', 'ERROR')
  )`;

const SANDBOXES = `
  SELECT DISTINCT s.id FROM sandboxes s JOIN app_conversations c ON c.sandbox_id = s.id
  WHERE s.host_id = $1 AND ${WAITING}`;

const CONVERSATIONS = `
  SELECT c.id, c.user_id, c.sandbox_id, f.execution_status
  FROM app_conversations c
  JOIN sandboxes s ON s.id = c.sandbox_id
  LEFT JOIN followed_conversations f ON f.id = c.id
  WHERE s.id = $1 AND ${WAITING}
  ORDER BY c.updated_at DESC`;

/** A conversation whose agent server was started anew since it was last given anything. */
export interface RestorableConversation {
  id: string;
  userId: string;
  sandboxId: string;
  /** As it was seen last; soon after the start that is what the agent server makes of it while it loads. */
  executionStatus: ConversationStatus | null;
}

interface Row {
  id: string;
  user_id: string;
  sandbox_id: string;
  execution_status: ConversationStatus | null;
}

/** Finds conversations that have to be restored. */
@Injectable()
export class RestorableConversations {
  private readonly findSandboxes = new NamedStatement<{ id: string }>('restorable_sandboxes', SANDBOXES);

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Ids of a host's sandboxes that have some. */
  async sandboxes(hostId: string): Promise<string[]> {
    return (await this.findSandboxes.run(this.dataSource, [hostId])).map(({ id }) => id);
  }

  /** Those of a sandbox, the last used first. */
  async of(sandboxId: string): Promise<RestorableConversation[]> {
    const rows = await this.dataSource.query<Row[]>(CONVERSATIONS, [sandboxId]);
    return rows.map((row) => ({
      id: row.id,
      userId: row.user_id,
      sandboxId: row.sandbox_id,
      executionStatus: row.execution_status,
    }));
  }

  /** Notes that the conversation has what it needs from this start of its sandbox on. */
  async done({ id }: RestorableConversation, generation: number): Promise<void> {
    await this.dataSource.query(
      'UPDATE app_conversations SET sandbox_generation = $2 WHERE id = $1 AND sandbox_generation < $2',
      [id, generation],
    );
  }
}
