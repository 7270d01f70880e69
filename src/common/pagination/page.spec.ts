import { describe, expect, it } from '@jest/globals';
import { decodePageId, formatTimeCursor, parseTimeCursor, toPage } from './page.js';

describe('toPage', () => {
  it.each([
    [['a', 'b', 'c'], 2, ['a', 'b'], 'b'],
    [['a', 'b'], 2, ['a', 'b'], null],
    [[], 2, [], null],
  ])('cuts %j to %d', (rows, limit, items, cursor) => {
    const page = toPage(rows, limit, (row) => row);

    expect(page.items).toEqual(items);
    expect(decodePageId(page.nextPageId ?? undefined)).toBe(cursor);
  });
});

describe('decodePageId', () => {
  it.each([
    undefined,
    '',
    '!!!',
    'a'.repeat(2000),
    'YQ==',
    Buffer.from([0xff, 0xfe]).toString('base64url'),
    Buffer.from('a\0b').toString('base64url'),
  ])('takes %j for the first page', (pageId) => {
    expect(decodePageId(pageId)).toBeNull();
  });
});

const CURSOR = { at: '2026-11-21T09:30:00.123456Z', id: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' };

describe('parseTimeCursor', () => {
  it('reads what formatTimeCursor wrote', () => {
    expect(parseTimeCursor(formatTimeCursor(CURSOR))).toEqual(CURSOR);
  });

  it.each([
    ['nothing', null],
    ['an empty text', ''],
    ['another cursor', 'ada@example.com'],
    ['a day that there is not', `2026-02-30T09:30:00.123456Z ${CURSOR.id}`],
    ['an hour that there is not', `2026-02-20T29:30:00.123456Z ${CURSOR.id}`],
    ['the year 0, which PostgreSQL does not have', `0000-02-20T09:30:00.123456Z ${CURSOR.id}`],
    ['no id', CURSOR.at],
    ['something behind it', `${formatTimeCursor(CURSOR)} x`],
  ])('takes %s for the first page', (_name, text) => {
    expect(parseTimeCursor(text)).toBeNull();
  });
});
