import type { AuthUser } from '../../../auth/auth.decorators.js';
import type { ReadEvent, StoredEvent } from '../store/event.queries.js';
import type { EventStream } from './event-stream.js';

const PAGE_SIZE = 100;
const MAX_TAIL_EVENTS = PAGE_SIZE;
const MAX_TAIL_CHARACTERS = 32 * 1024;
/** Small events are sent together up to this size. */
const PART_CHARACTERS = 32 * 1024;
/** How long after its last event this process counts as the follower; then another may have taken over. */
const FED_MS = 2_000;

/** Events as they are sent, written once for all readers. */
export interface StreamPage {
  parts: readonly { bytes: Buffer; /** Number of the last event. */ seq: number }[];
  hasMore: boolean;
}

type ReadStored = (after: number, limit: number) => Promise<ReadEvent[]>;

/** The open streams of one conversation. Up-to-date readers get new events from memory, others from the table. */
export class Audience {
  readonly streams = new Map<EventStream, Pick<AuthUser, 'id' | 'keyId'>>();
  private tail: StoredEvent[] = [];
  private tailCharacters = 0;
  private fedAt = -Infinity;
  /** A read that began before the latest wake may have missed the event that caused it. */
  private wakes = 0;
  private readonly reads = new Map<string, Promise<StreamPage>>();

  constructor(private readonly readStored: ReadStored) {}

  get last(): number {
    return this.tail.at(-1)?.seq ?? 0;
  }

  /** Whether this process stores the events, so that notifications about them bring nothing new. */
  get isFed(): boolean {
    return performance.now() - this.fedAt < FED_MS;
  }

  feed(rows: readonly StoredEvent[]): void {
    const last = this.last;
    const fresh = rows.filter(({ seq }) => seq > last);
    const [first] = fresh;
    if (first === undefined) {
      return;
    }
    this.fedAt = performance.now();
    if (first.seq !== last + 1) {
      this.tail = [];
      this.tailCharacters = 0;
    }
    for (const row of fresh) {
      this.tail.push(row);
      this.tailCharacters += row.body.length;
    }
    while (this.tail.length > MAX_TAIL_EVENTS || this.tailCharacters > MAX_TAIL_CHARACTERS) {
      this.tailCharacters -= this.tail.shift()?.body.length ?? 0;
    }
    this.wakeBehind(fresh.at(-1)?.seq ?? last);
  }

  /** Makes every reader look for more events in the table. */
  wake(): void {
    this.wakes += 1;
    this.streams.forEach((_owner, stream) => stream.wake());
  }

  close(): void {
    this.streams.forEach((_owner, stream) => stream.close());
  }

  page(after: number): Promise<StreamPage> {
    const key = `${after}/${this.last}/${this.wakes}`;
    const shared = this.reads.get(key);
    if (shared) {
      return shared;
    }
    const reading = this.read(after);
    this.reads.set(key, reading);
    const forget = (): void => void this.reads.delete(key);
    reading.then(forget, forget);
    return reading;
  }

  private async read(after: number): Promise<StreamPage> {
    const first = this.tail[0]?.seq ?? Infinity;
    if (after + 1 >= first && after < this.last) {
      return { parts: toParts(this.tail.slice(after + 1 - first)), hasMore: false };
    }
    const rows = await this.readStored(after, PAGE_SIZE);
    return {
      parts: toParts(rows),
      hasMore: (rows[0]?.found ?? 0) > rows.length || rows.length === PAGE_SIZE,
    };
  }

  private wakeBehind(last: number): void {
    this.streams.forEach((_owner, stream) => {
      if (stream.sent < last) {
        stream.wake();
      }
    });
  }
}

function toParts(rows: readonly StoredEvent[]): StreamPage['parts'] {
  const parts: { bytes: Buffer; seq: number }[] = [];
  let text = '';
  let seq = 0;
  for (const row of rows) {
    const frame = sseFrame(row);
    if (text !== '' && text.length + frame.length > PART_CHARACTERS) {
      parts.push({ bytes: Buffer.from(text), seq });
      text = '';
    }
    text += frame;
    seq = row.seq;
  }
  return text === '' ? parts : [...parts, { bytes: Buffer.from(text), seq }];
}

/** An event in the format of server-sent events. Its JSON is one line. */
function sseFrame({ seq, kind, body }: StoredEvent): string {
  return `id: ${seq}\nevent: ${kind.replaceAll(/[\r\n]/g, ' ')}\ndata: ${body}\n\n`;
}
