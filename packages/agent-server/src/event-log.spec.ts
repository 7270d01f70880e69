import { readFileSync } from 'node:fs';
import { appendFile, readFile, truncate, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { EventLog, nextTimestamp, normalizeTimestamp, searchLog } from './event-log.js';
import { temporaryFolder } from '../../../test/support/temporary-folder.js';

interface Note {
  id: string;
  timestamp: string;
  kind: string;
  text: string;
}

async function add(log: EventLog<Note>, text: string): Promise<Note> {
  return await log.append((identity) => ({ ...identity, kind: 'Note', text }));
}

function texts(log: EventLog<Note>): string[] {
  return log.entries.map(({ text }) => text);
}

describe('EventLog', () => {
  const folder = temporaryFolder();
  let file: string;
  let opened: EventLog<Note> | null = null;

  beforeEach(async () => {
    file = folder('deep', 'events.jsonl');
  });

  afterEach(async () => {
    await opened?.close();
    opened = null;
  });

  /** As after a restart: the log that was open before is closed. */
  const open = async (limits?: Parameters<typeof EventLog.open>[1]): Promise<EventLog<Note>> => {
    await opened?.close();
    opened = null;
    opened = await EventLog.open<Note>(file, limits);
    return opened;
  };

  it('keeps entries across a restart, in the order of the calls, with increasing timestamps', async () => {
    const first = await open();
    const added = await Promise.all(['a', 'b', 'c'].map((text) => add(first, text)));
    const again = await open();
    await add(again, 'd');
    expect(texts(again)).toEqual(['a', 'b', 'c', 'd']);
    expect(again.get(added[1]?.id ?? '')?.text).toBe('b');
    const timestamps = again.entries.map(({ timestamp }) => timestamp);
    expect([...new Set(timestamps)].toSorted()).toEqual(timestamps);
  });

  it('writes an entry before it notifies listeners', async () => {
    const log = await open();
    const heard: string[] = [];
    const stop = log.onAppend(() => heard.push(readFileSync(file, 'utf8')));
    const entry = await add(log, 'a');
    stop();
    await add(log, 'b');
    expect(heard).toEqual([`${JSON.stringify(entry)}\n`]);
  });

  it.each([
    ['half a line', '{"id":"x","timesta'],
    ['half a character', '{"text":"\u00e4'.slice(0, -1)],
  ])('cuts %s off', async (_case, rest) => {
    const first = await open();
    await add(first, 'a');
    await appendFile(file, rest);
    const second = await open();
    await add(second, 'b');
    const third = await open();
    expect(texts(third)).toEqual(['a', 'b']);
  });

  it('skips a damaged line in the middle and keeps what follows', async () => {
    const first = await open();
    await add(first, 'a');
    await writeFile(file, `garbage\n{"id":1}\n${await readFile(file, 'utf8')}`);
    const second = await open();
    expect(texts(second)).toEqual(['a']);
  });

  it('reads lines of any length, and skips one that is too long to be an event', async () => {
    const first = await open();
    const lengths = [1, 1_048_500, 1_048_576, 3_000_000, 10];
    for (const length of lengths) {
      await add(first, 'ä'.repeat(length));
    }
    await expect(add(first, 'x'.repeat(8 * 1_048_576))).rejects.toThrow('less than 8 MiB');
    await appendFile(file, `{"id":"${'x'.repeat(9 * 1_048_576)}"}\n{"id":"torn`);
    const second = await open();
    await add(second, 'last');
    const third = await open();
    expect(texts(third).map(({ length }) => length)).toEqual([...lengths, 4]);
  });

  it('refuses entries and files beyond its limit', async () => {
    const first = await open({ maxBytes: 1_000 });
    await add(first, 'x'.repeat(500));
    await expect(add(first, 'x'.repeat(500))).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining('start a new conversation'),
    });
    await add(first, 'small');
    expect(first.entries).toHaveLength(2);
    await expect(open({ maxBytes: 100 })).rejects.toThrow('the most allowed');
  });

  it('starts over when it is full, if configured to', async () => {
    const limits = { maxBytes: 1_000, whenFull: 'clear' } as const;
    const first = await open(limits);
    await add(first, 'x'.repeat(500));
    await add(first, 'y'.repeat(500));
    expect(texts(first)).toEqual(['y'.repeat(500)]);
    const second = await open({ ...limits, maxBytes: 100 });
    expect(texts(second)).toEqual([]);
  });

  it('refuses a gigabyte without reading it', async () => {
    await open();
    await truncate(file, 1024 * 1024 * 1024);
    await expect(open()).rejects.toThrow('256 MiB');
  });

  it('continues after a failed write', async () => {
    const log = await open();
    const unwritable: { self?: unknown } = {};
    unwritable.self = unwritable;
    await expect(
      log.append((identity) => ({ ...identity, kind: 'Note', text: 'x', ...unwritable })),
    ).rejects.toThrow(/circular/);
    await add(log, 'a');
    expect(texts(log)).toEqual(['a']);
  });

  it('is paged by size too: the service would ask for less, and a hundred pictures fill the memory', async () => {
    const log = await open();
    for (let count = 0; count < 10; count += 1) {
      await add(log, 'x'.repeat(1_048_576));
    }
    const again = await open();
    const page = searchLog(again, { limit: 100, sort_order: 'TIMESTAMP' }, () => true);
    expect(page.items).toHaveLength(7);
    expect(page.next_page_id).toBe(again.entries[7]?.id);
    const rest = { page_id: page.next_page_id ?? '', limit: 100, sort_order: 'TIMESTAMP' } as const;
    expect(searchLog(again, rest, () => true)).toEqual({ items: again.entries.slice(7), next_page_id: null });
  });

  it('can be cleared', async () => {
    const log = await open();
    await add(log, 'a');
    expect(await log.clear()).toBe(1);
    await add(log, 'b');
    const again = await open();
    expect(texts(again)).toEqual(['b']);
  });
});

const NOON = Date.UTC(2026, 0, 31, 12);

it.each([
  [undefined, '2026-01-31T12:00:00.000000'],
  ['2026-01-31T11:59:59.999999', '2026-01-31T12:00:00.000000'],
  ['2026-01-31T12:00:00.000000', '2026-01-31T12:00:00.000001'],
  ['2026-01-31T12:00:00.000999', '2026-01-31T12:00:00.001000'],
  ['2026-01-31T12:59:59.999999', '2026-01-31T13:00:00.000000'],
])('nextTimestamp after %s', (previous, expected) => {
  expect(nextTimestamp(previous, NOON)).toBe(expected);
});

it.each([
  ['2026-01-31T12:00:00', '2026-01-31T12:00:00.000000'],
  ['2026-01-31 12:00:00.5', '2026-01-31T12:00:00.500000'],
  ['2026-01-31T12:00:00.123456Z', '2026-01-31T12:00:00.123456'],
  ['2026-01-31T13:00:00+01:00', '2026-01-31T12:00:00.000000'],
  ['2026-01-31T13:00:00+0100', '2026-01-31T12:00:00.000000'],
  ['2026-01-31T12:00', '2026-01-31T12:00:00.000000'],
  ['2026-01-31', '2026-01-31T00:00:00.000000'],
  ['2026-02-31T99:00:00', null],
  ['2026-01-31T12', null],
  ['yesterday', null],
  ['', null],
])('normalizeTimestamp: %s', (text, expected) => {
  expect(normalizeTimestamp(text)).toBe(expected);
});
