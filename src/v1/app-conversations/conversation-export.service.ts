import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { parseHexId } from '../../common/identifiers.js';
import { jsonText } from '../../common/json-access.js';
import { EventQueries } from '../events/event.queries.js';
import { ConversationPresenter } from './api/conversation.presenter.js';
import type { ZipEntry } from './conversation-zip.js';
import { type ConversationRow, ConversationQueries } from './conversation.repository.js';
import { unknownConversation } from './conversations.service.js';

const EVENTS_AT_ONCE = 100;

/** Packs conversations for those who want to keep them, or to look at them elsewhere. */
@Injectable()
export class ConversationExportService {
  constructor(
    private readonly conversations: ConversationQueries,
    private readonly events: EventQueries,
    private readonly answers: ConversationPresenter,
  ) {}

  /**
   * A zip archive with `meta.json` (the conversation without the key of its sandbox) and all its stored events.
   *
   * @throws DomainError not_found unless it is a conversation of this user
   */
  async pack(userId: string, givenId: string): Promise<Readable> {
    const id = parseHexId(givenId);
    const row = id === null ? null : await this.conversations.find(userId, id);
    if (row === null) {
      throw unknownConversation();
    }
    const { zipEntries } = await import('./conversation-zip.js');
    return Readable.from(zipEntries(this.entries(row)), { objectMode: false });
  }

  private async *entries(row: ConversationRow): AsyncGenerator<ZipEntry> {
    const { session_api_key: _key, conversation_url: _url, ...meta } = this.answers.conversation(row);
    yield { name: 'meta.json', text: JSON.stringify(meta, null, 2) };
    let index = 0;
    for (let seq = 0; ;) {
      const events = await this.events.after(row.id, seq, EVENTS_AT_ONCE);
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

const MOST_CHARACTERS = 100;

/**
 * Name of an event's file in an export, as OpenHands names it.
 *
 * @param index from 0
 * @param eventId of an agent server: it may hold anything, and the name must lead nowhere else
 */
export function eventFileName(index: number, eventId: string): string {
  const safe = eventId.replace(/[^0-9A-Za-z_-]/g, '_').slice(0, MOST_CHARACTERS);
  return `event_${String(index).padStart(6, '0')}_${safe}.json`;
}
