import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { LiveKeys } from '../../../auth/live-keys.js';
import { NamedStatement } from '../../../database/named-statement.js';

/** What open streams depend on, for all of them at once. */
@Injectable()
export class StreamChecks {
  private readonly counts = new NamedStatement<{ id: string; event_count: number }>(
    'followed_conversation_counts',
    'SELECT id, event_count FROM followed_conversations WHERE id = ANY ($1::uuid[])',
  );

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly liveKeys: LiveKeys,
  ) {}

  /** Number of events of those conversations that are there, and those keys that still open something. */
  async look(
    conversationIds: readonly string[],
    keyIds: readonly string[],
  ): Promise<{ eventCounts: Map<string, number>; keys: Set<string> }> {
    const [rows, keys] = await Promise.all([
      this.counts.run(this.dataSource, [conversationIds]),
      this.liveKeys.among(keyIds),
    ]);
    return { eventCounts: new Map(rows.map(({ id, event_count: count }) => [id, count])), keys };
  }
}
