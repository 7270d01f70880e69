import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { jsonText } from '@slipway/common/json-access.js';
import { zip, type ZipEntry } from '@slipway/common/zip.js';
import { parseHexId } from '../../common/identifiers.js';
import { unknownConversation } from '../events/events.service.js';
import { EventQueries } from '../events/store/event.queries.js';
import { ConversationPresenter } from './api/conversation.presenter.js';
import { ConversationQueries, type ConversationRow } from './conversation.queries.js';

const EVENT_BATCH = 100;
const MAX_NAME_LENGTH = 100;

@Injectable()
export class ConversationExportService {
  constructor(
    private readonly conversations: ConversationQueries,
    private readonly events: EventQueries,
    private readonly presenter: ConversationPresenter,
  ) {}

  /** A zip archive of all events and `meta.json`, without the sandbox's key. Throws DomainError not_found. */
  async pack(userId: string, givenId: string): Promise<Readable> {
    const id = parseHexId(givenId);
    const row = id === null ? null : await this.conversations.find(userId, id);
    if (row === null) {
      throw unknownConversation();
    }
    return Readable.from(zip(this.entries(row)), { objectMode: false });
  }

  private async *entries(row: ConversationRow): AsyncGenerator<ZipEntry> {
    const { session_api_key: _key, conversation_url: _url, ...meta } = this.presenter.conversation(row);
    yield { name: 'meta.json', text: JSON.stringify(meta, null, 2) };
    let index = 0;
    for (let seq = 0; ;) {
      const events = await this.events.after(row.id, seq, EVENT_BATCH);
      const last = events.at(-1);
      if (last === undefined) {
        return;
      }
      for (const { body } of events) {
        yield { name: eventFileName(index, jsonText(JSON.parse(body), 'id') ?? ''), text: body };
        index += 1;
      }
      seq = last.seq;
    }
  }
}

/** Named as OpenHands does, from index 0. The id comes from an agent server, so only harmless characters are kept. */
export function eventFileName(index: number, eventId: string): string {
  const safe = eventId.replace(/[^0-9A-Za-z_-]/g, '_').slice(0, MAX_NAME_LENGTH);
  return `event_${String(index).padStart(6, '0')}_${safe}.json`;
}
