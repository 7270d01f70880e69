import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import path from 'node:path';
import pLimit from 'p-limit';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { HttpError, unknownPage } from './http/http-error.js';
import { log } from './observability.js';

const LINE_BREAK = 0x0a;
const MIB = 1024 * 1024;
const READ_BYTES = MIB;
/** The service reads 8 MiB with what is around an event, or a page, and stops the sandbox that sends a larger event. */
const MAX_ENTRY_BYTES = 8 * MIB - 64 * 1024;
/** Earlier versions wrote such lines; a longer one is damage. */
const MAX_LINE_BYTES = 32 * MIB;
/** A log takes about three times as much in memory. */
const MAX_LOG_BYTES = 256 * MIB;

interface EventLogLimits {
  maxBytes: number;
  /** What a log without room for another entry does: refuse the entry, or start over without the old ones. */
  whenFull: 'refuse' | 'clear';
}

function logIsFull(maxBytes: number): Error {
  const size = Math.floor(maxBytes / MIB);
  return new HttpError(
    409,
    `The event log has reached ${size} MiB, the most allowed: start a new conversation.`,
  );
}

export interface EventIdentity {
  id: string;
  timestamp: string;
}

/**
 * An append-only file with a line of JSON per entry; all entries are in memory too, and positions are line numbers.
 * Listeners hear of an entry once the operating system has it; only `sync` makes it survive a power failure.
 */
export class EventLog<E extends EventIdentity> {
  readonly #file: FileHandle;
  readonly #limits: EventLogLimits;
  readonly #entries: E[];
  /** Bytes of the lines of the entries. */
  readonly #sizes: number[];
  readonly #positions = new Map<string, number>();
  readonly #listeners = new Set<(entry: E) => void>();
  /** Bytes of complete lines; whatever a failed write left after them is overwritten. */
  #size: number;
  readonly #inOrder = pLimit(1);

  private constructor(file: FileHandle, { entries, sizes, size }: StoredLines<E>, limits: EventLogLimits) {
    this.#file = file;
    this.#limits = limits;
    this.#entries = entries;
    this.#sizes = sizes;
    this.#size = size;
    entries.forEach((entry, position) => this.#positions.set(entry.id, position));
  }

  /** Removes the incomplete last line of a killed process. @throws Error for a full log that is not cleared */
  static async open<E extends EventIdentity>(
    file: string,
    { maxBytes = MAX_LOG_BYTES, whenFull = 'refuse' }: Partial<EventLogLimits> = {},
  ): Promise<EventLog<E>> {
    await mkdir(path.dirname(file), { recursive: true });
    // 'a+' would ignore the position and always write at the end.
    const handle = await open(file, 'r+').catch(() => open(file, 'wx+', 0o600));
    try {
      if ((await handle.stat()).size > maxBytes) {
        if (whenFull === 'refuse') {
          throw logIsFull(maxBytes);
        }
        await handle.truncate(0);
      }
      const stored = await readLines<E>(handle, file);
      await handle.truncate(stored.size);
      return new EventLog(handle, stored, { maxBytes, whenFull });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Oldest first. */
  get entries(): readonly E[] {
    return this.#entries;
  }

  /** Position of the entry with this id; -1 if there is none. */
  positionOf(id: string): number {
    return this.#positions.get(id) ?? -1;
  }

  sizeAt(position: number): number {
    return this.#sizes[position] ?? 0;
  }

  get(id: string): E | undefined {
    return this.#entries[this.positionOf(id)];
  }

  /** The log is unchanged when this throws. @throws Error for an entry that is too large, and when the log is full */
  async append<Appended extends E>(make: (identity: EventIdentity) => Appended): Promise<Appended> {
    return await this.#inOrder(async () => {
      const timestamp = nextTimestamp(this.#entries.at(-1)?.timestamp, Date.now());
      const entry = make({ id: randomUUID(), timestamp });
      const line = Buffer.from(`${JSON.stringify(entry)}\n`, 'utf8');
      if (line.length > MAX_ENTRY_BYTES) {
        throw new HttpError(413, 'An event must have less than 8 MiB.');
      }
      if (this.#size + line.length > this.#limits.maxBytes) {
        await this.#makeRoom();
      }
      await writeAll(this.#file, line, this.#size);
      this.#size += line.length;
      this.#sizes.push(line.length);
      this.#positions.set(entry.id, this.#entries.push(entry) - 1);
      this.#listeners.forEach((listener) => listener(entry));
      return entry;
    });
  }

  /** Calls the listener with every later entry, in order, once written. Returns a function that unsubscribes. */
  onAppend(listener: (entry: E) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Resolves once everything written so far is on disk. */
  async sync(): Promise<void> {
    await this.#inOrder(() => this.#file.datasync());
  }

  async clear(): Promise<number> {
    return await this.#inOrder(() => this.#removeAll());
  }

  async close(): Promise<void> {
    await this.#inOrder(async () => {
      await this.#file.datasync();
      await this.#file.close();
    });
  }

  async #makeRoom(): Promise<void> {
    if (this.#limits.whenFull === 'refuse') {
      throw logIsFull(this.#limits.maxBytes);
    }
    log('warn', 'cleared full event log', { bytes: this.#size });
    await this.#removeAll();
  }

  async #removeAll(): Promise<number> {
    await this.#file.truncate(0);
    this.#size = 0;
    this.#sizes.length = 0;
    this.#positions.clear();
    return this.#entries.splice(0).length;
  }
}

interface LogQuery {
  page_id?: string | undefined;
  limit: number;
  sort_order: 'TIMESTAMP' | 'TIMESTAMP_DESC';
}

/** @throws InvalidRequestError when the log does not have the entry that the page begins with */
export function searchLog<E extends EventIdentity>(
  eventLog: EventLog<E>,
  { page_id: pageId, limit, sort_order: order }: LogQuery,
  matches: (entry: E) => boolean,
): { items: E[]; next_page_id: string | null } {
  const { entries } = eventLog;
  const step = order === 'TIMESTAMP_DESC' ? -1 : 1;
  const first = step === 1 ? 0 : entries.length - 1;
  const named = pageId === undefined ? first : eventLog.positionOf(pageId);
  if (pageId !== undefined && named === -1) {
    throw unknownPage();
  }
  const items: E[] = [];
  let bytes = 0;
  for (let position = named; ; position += step) {
    const entry = entries[position];
    if (entry === undefined) {
      return { items, next_page_id: null };
    }
    if (matches(entry)) {
      bytes += eventLog.sizeAt(position);
      if (items.length === limit || (items.length > 0 && bytes > MAX_ENTRY_BYTES)) {
        return { items, next_page_id: entry.id };
      }
      items.push(entry);
    }
  }
}

/** Only this class writes the file, so the check only has to detect damage. */
function isEntry(value: unknown): value is EventIdentity {
  return ['id', 'timestamp', 'kind'].every((member) => jsonText(value, member) !== null);
}

/** Later than the previous entry: ISO 8601, UTC, microseconds, no zone, so that times sort as text. */
export function nextTimestamp(previous: string | undefined, now: number): string {
  const current = format(now * 1000);
  return previous === undefined || current > previous ? current : format(toMicroseconds(previous) + 1);
}

/** The same form for a time from a client; null if it is not one. A time without a zone is UTC; a day means its midnight. */
export function normalizeTimestamp(text: string): string | null {
  // An unescaped plus sign in a query arrives as a blank.
  const iso = text.replace(/ (\d\d:?\d\d)$/, '+$1').replace(' ', 'T');
  const [, day, minutes = '00:00', seconds = ':00', fraction = '', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(:\d\d)?(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?)?$/i.exec(iso) ?? [];
  const milliseconds = Date.parse(`${day}T${minutes}${seconds}${zone.replace(/(\d\d)(\d\d)$/, '$1:$2')}`);
  if (Number.isNaN(milliseconds)) {
    return null;
  }
  return format(milliseconds * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6)));
}

function format(microseconds: number): string {
  const milliseconds = Math.floor(microseconds / 1000);
  const rest = String(microseconds % 1000).padStart(3, '0');
  return new Date(milliseconds).toISOString().replace('Z', rest);
}

function toMicroseconds(timestamp: string): number {
  return Date.parse(`${timestamp.slice(0, 23)}Z`) * 1000 + Number(timestamp.slice(23));
}

interface StoredLines<E> {
  entries: E[];
  sizes: number[];
  /** Offset at which the last complete line ends, in bytes. */
  size: number;
}

// Keeps only one line in memory besides the entries.
async function readLines<E extends EventIdentity>(handle: FileHandle, file: string): Promise<StoredLines<E>> {
  const entries: E[] = [];
  const sizes: number[] = [];
  let lines = 0;
  let size = 0;
  let position = 0;
  let begun: Buffer[] = [];
  let begunBytes = 0;
  const take = (rest: Buffer): void => {
    const bytes = begunBytes + rest.length;
    const entry =
      bytes > MAX_LINE_BYTES ? undefined : parseJson(Buffer.concat([...begun, rest]).toString('utf8'));
    lines += 1;
    size += bytes + 1;
    begun = [];
    begunBytes = 0;
    if (isEntry(entry)) {
      entries.push(entry as E);
      sizes.push(bytes + 1);
    } else {
      log('warn', 'failed to parse event log line', { file, line: lines });
    }
  };
  for (;;) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, position);
    if (bytesRead === 0) {
      return { entries, sizes, size };
    }
    position += bytesRead;
    let begin = 0;
    for (let end = buffer.indexOf(LINE_BREAK); end !== -1 && end < bytesRead;) {
      take(buffer.subarray(begin, end));
      begin = end + 1;
      end = buffer.indexOf(LINE_BREAK, begin);
    }
    begunBytes += bytesRead - begin;
    if (begunBytes <= MAX_LINE_BYTES) {
      begun.push(buffer.subarray(begin, bytesRead));
    } else {
      begun = [];
    }
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, start: number): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, start + written);
    written += bytesWritten;
  }
}
