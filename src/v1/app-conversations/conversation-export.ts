import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { jsonText } from '@slipway/common/json-access.js';
import { zip, type ZipEntry } from '@slipway/common/zip.js';
import {
  FollowedConversationRepository,
  type StoredLog,
} from '../events/followed-conversation.repository.js';
import { EventQueries } from '../events/store/event.queries.js';
import { ConversationPresenter } from './api/conversation.presenter.js';
import { ConversationQueries } from './conversation.queries.js';
import type { ConversationRow } from './conversation-row.js';

const EVENT_BATCH = 100;
const MAX_NAME_LENGTH = 100;

/** Conversations as files to take along. */
@Injectable()
export class ConversationExport {
  constructor(
    private readonly queries: ConversationQueries,
    private readonly logs: FollowedConversationRepository,
    private readonly eventLog: EventQueries,
    private readonly presenter: ConversationPresenter,
  ) {}

  /**
   * A zip archive of `meta.json`, without the sandbox's key, and all events until now: who reads it slowly gets none from
   * after the end of a share. Throws DomainError not_found.
   */
  async archive(userId: string, givenId: string): Promise<Readable> {
    const row = await this.queries.get(userId, givenId);
    const log = await this.logs.findLog(row.id, userId);
    return Readable.from(zip(this.entries(row, log)), { objectMode: false });
  }

  private async *entries(row: ConversationRow, log: StoredLog | null): AsyncGenerator<ZipEntry> {
    const { eventCount = 0, since } = log ?? {};
    const { session_api_key: _key, conversation_url: _url, ...meta } = this.presenter.conversation(row);
    yield { name: 'meta.json', text: JSON.stringify(meta, null, 2) };
    let index = 0;
    for (let seq = 0; seq < eventCount;) {
      const events = await this.eventLog.after(row.id, seq, EVENT_BATCH, since);
      for (const { body } of events.filter((event) => event.seq <= eventCount)) {
        yield { name: eventFileName(index, jsonText(JSON.parse(body), 'id') ?? ''), text: body };
        index += 1;
      }
      seq = events.at(-1)?.seq ?? eventCount;
    }
  }
}

/** Named as OpenHands does, from index 0. The id comes from an agent server, so only harmless characters are kept. */
export function eventFileName(index: number, eventId: string): string {
  const safe = eventId.replace(/[^0-9A-Za-z_-]/g, '_').slice(0, MAX_NAME_LENGTH);
  return `event_${String(index).padStart(6, '0')}_${safe}.json`;
}
