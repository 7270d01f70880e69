import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import path from 'node:path';
import type { AgentEvent } from '../agent-protocol/events.js';
import type { BashEvent } from '../agent-protocol/server.js';
import { jsonText } from '../common/json-access.js';
import { log } from './log.js';

const LINE_BREAK = 0x0a;

/** What every entry has, given by the log. */
export interface EventIdentity {
  id: string;
  timestamp: string;
}

/**
 * Entries in the order they happened: one line of JSON each in an append-only file, all of them in memory too. The
 * sequence number of an entry is its line.
 *
 * An entry is with the operating system before anyone hears of it, so the end of this process loses none. `sync` puts
 * it on the disk; without it the loss of power may cost what was written last.
 */
export class EventLog<E extends EventIdentity> {
  readonly #file: FileHandle;
  readonly #entries: E[];
  readonly #positions = new Map<string, number>();
  readonly #listeners = new Set<(entry: E) => void>();
  /** Bytes of whole lines; what a failed write left behind them is written over. */
  #size: number;
  #tail: Promise<unknown> = Promise.resolve();

  private constructor(file: FileHandle, entries: E[], size: number) {
    this.#file = file;
    this.#entries = entries;
    this.#size = size;
    entries.forEach((entry, position) => this.#positions.set(entry.id, position));
  }

  /**
   * Opens or creates the file. Half a line at its end, left by a process that was killed, is cut off.
   *
   * @param isEntry whether a line is whole; its file is ours alone, so damage is all that can be wrong with it
   */
  static async open<E extends EventIdentity>(
    file: string,
    isEntry: (value: unknown) => value is E,
  ): Promise<EventLog<E>> {
    await mkdir(path.dirname(file), { recursive: true });
    // 'a+' would write at the end whatever the position says.
    const handle = await open(file, 'r+').catch(() => open(file, 'wx+', 0o600));
    const content = await handle.readFile();
    const size = content.lastIndexOf(LINE_BREAK) + 1;
    if (size < content.length) {
      await handle.truncate(size);
    }
    const lines = content.toString('utf8', 0, size).split('\n').slice(0, -1);
    const entries = lines.flatMap((line, index) => {
      const entry = parseLine(line);
      if (!isEntry(entry)) {
        log('warn', 'a line of an event log is damaged and left out', { file, line: index + 1 });
        return [];
      }
      return [entry];
    });
    return new EventLog(handle, entries, size);
  }

  /** Oldest first. */
  get entries(): readonly E[] {
    return this.#entries;
  }

  /** Where the entry with this id stands; -1 when there is none. */
  positionOf(id: string): number {
    return this.#positions.get(id) ?? -1;
  }

  get(id: string): E | undefined {
    return this.#entries[this.positionOf(id)];
  }

  /**
   * Writes an entry, then tells the listeners.
   *
   * @throws Error when the file cannot be written; then the log is as it was
   */
  async append(make: (identity: EventIdentity) => E): Promise<E> {
    return await this.#inTurn(async () => {
      const timestamp = nextTimestamp(this.#entries.at(-1)?.timestamp, Date.now());
      const entry = make({ id: randomUUID(), timestamp });
      const line = Buffer.from(`${JSON.stringify(entry)}\n`, 'utf8');
      await writeAll(this.#file, line, this.#size);
      this.#size += line.length;
      this.#positions.set(entry.id, this.#entries.push(entry) - 1);
      this.#listeners.forEach((listener) => listener(entry));
      return entry;
    });
  }

  /** Tells of every later entry, in order, right after it was written. Answers how to stop that. */
  onAppend(listener: (entry: E) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Resolves once everything so far is on the disk. */
  async sync(): Promise<void> {
    await this.#inTurn(() => this.#file.datasync());
  }

  /** Forgets all entries and answers how many they were. */
  async clear(): Promise<number> {
    return await this.#inTurn(async () => {
      await this.#file.truncate(0);
      this.#size = 0;
      this.#positions.clear();
      return this.#entries.splice(0).length;
    });
  }

  async close(): Promise<void> {
    await this.#inTurn(async () => {
      await this.#file.datasync();
      await this.#file.close();
    });
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(work);
    this.#tail = result.catch(() => undefined);
    return await result;
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, start: number): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, start + written);
    written += bytesWritten;
  }
}

/** @returns undefined when the line is damaged */
function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/**
 * Timestamp of the next entry of a log: now, but later than the entry before it, so that time and order agree.
 *
 * @param now milliseconds since 1970
 * @returns ISO 8601, UTC, microseconds, no zone; always the same length, so that texts compare as times do
 */
export function nextTimestamp(previous: string | undefined, now: number): string {
  const current = format(now * 1000);
  return previous === undefined || current > previous ? current : format(toMicroseconds(previous) + 1);
}

/** The same form for a time that a client gave; null when it is none. A time without zone is UTC. */
export function normalizeTimestamp(text: string): string | null {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/i.exec(
    text.replace(' ', 'T'),
  );
  const [, seconds, fraction = '', zone = 'Z'] = match ?? [];
  const milliseconds = Date.parse(`${seconds}${zone.replace(/(\d\d)(\d\d)$/, '$1:$2')}`);
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

/** Whether a line of a conversation's log is whole. */
export function isAgentEvent(value: unknown): value is AgentEvent {
  return isWhole(value);
}

/** Whether a line of the log of bash commands is whole. */
export function isBashEvent(value: unknown): value is BashEvent {
  return isWhole(value);
}

function isWhole(value: unknown): boolean {
  return ['id', 'timestamp', 'kind'].every((member) => jsonText(value, member) !== null);
}

interface LogSearch<E> {
  matches: (entry: E) => boolean;
  /** Id of the entry to begin with; anything unknown means the first page. */
  pageId: string | undefined;
  limit: number;
  descending: boolean;
}

interface LogPage<E> {
  items: E[];
  next_page_id: string | null;
}

/** One page of the matching entries. */
export function searchLog<E extends EventIdentity>(eventLog: EventLog<E>, search: LogSearch<E>): LogPage<E> {
  const { entries } = eventLog;
  const step = search.descending ? -1 : 1;
  const first = search.descending ? entries.length - 1 : 0;
  const named = search.pageId === undefined ? -1 : eventLog.positionOf(search.pageId);
  const items: E[] = [];
  for (let position = named === -1 ? first : named; ; position += step) {
    const entry = entries[position];
    if (entry === undefined) {
      return { items, next_page_id: null };
    }
    if (search.matches(entry)) {
      if (items.length === search.limit) {
        return { items, next_page_id: entry.id };
      }
      items.push(entry);
    }
  }
}
