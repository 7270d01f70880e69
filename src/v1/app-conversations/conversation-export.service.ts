import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { parseHexId } from '../../common/identifiers.js';
import { jsonText } from '../../common/json-access.js';
import { unknownConversation } from '../events/events.service.js';
import { EventQueries } from '../events/store/event.queries.js';
import { ConversationPresenter } from './api/conversation.presenter.js';
import { ConversationQueries, type ConversationRow } from './conversation.queries.js';

const EVENT_BATCH = 100;
const MAX_NAME_LENGTH = 100;
/** Packed at a time, which takes a few milliseconds. */
const PIECE_BYTES = 128 * 1024;

/** A file of an archive. */
interface ZipEntry {
  name: string;
  text: string;
}

/** Packs conversations into archives. */
@Injectable()
export class ConversationExportService {
  constructor(
    private readonly conversations: ConversationQueries,
    private readonly events: EventQueries,
    private readonly presenter: ConversationPresenter,
  ) {}

  /**
   * A zip archive with `meta.json` (the conversation without the key of its sandbox) and all stored events.
   *
   * @throws DomainError not_found unless the conversation is this user's
   */
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

/**
 * The name of an event's file, as OpenHands names it.
 *
 * @param index from 0
 * @param eventId comes from an agent server and may hold anything, so the name keeps only harmless characters
 */
export function eventFileName(index: number, eventId: string): string {
  const safe = eventId.replace(/[^0-9A-Za-z_-]/g, '_').slice(0, MAX_NAME_LENGTH);
  return `event_${String(index).padStart(6, '0')}_${safe}.json`;
}

/** Packs entries as they come, so that an archive of any size takes the memory of its largest entry. */
async function* zip(entries: AsyncIterable<ZipEntry>): AsyncGenerator<Uint8Array> {
  // Loaded with the first export only.
  const { Zip, ZipDeflate } = await import('fflate');
  let chunks: Uint8Array[] = [];
  const archive = new Zip((error, chunk) => {
    if (error) {
      throw error;
    }
    chunks.push(chunk);
  });
  const takeChunks = (): Uint8Array[] => {
    const taken = chunks;
    chunks = [];
    return taken;
  };
  for await (const { name, text } of entries) {
    const file = new ZipDeflate(name);
    archive.add(file);
    const bytes = Buffer.from(text);
    for (let begin = 0; begin < bytes.length; begin += PIECE_BYTES) {
      const end = Math.min(begin + PIECE_BYTES, bytes.length);
      file.push(bytes.subarray(begin, end), end === bytes.length);
      yield* takeChunks();
      if (end < bytes.length) {
        // What is packed well leaves nothing to wait for.
        await setImmediate();
      }
    }
  }
  archive.end();
  yield* takeChunks();
}
