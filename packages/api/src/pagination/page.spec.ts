import { describe, expect, it } from '@jest/globals';
import { InvalidInputError } from '../errors/problem-error.js';
import {
  encodePageId,
  formatTimeCursor,
  parseNumberCursor,
  parsePageId,
  parseTimeCursor,
  toPage,
} from './page.js';

describe('toPage', () => {
  it.each([
    [['a', 'b', 'c'], 2, ['a', 'b'], 'b'],
    [['a', 'b'], 2, ['a', 'b'], null],
    [[], 2, [], null],
  ])('cuts %j to %d', (rows, limit, items, cursor) => {
    const page = toPage('letters', rows, limit, (row) => row);

    expect(page.items).toEqual(items);
    expect(parsePageId('letters', page.nextPageId ?? undefined, String)).toBe(cursor);
  });
});

describe('parsePageId', () => {
  const OWN = encodePageId('letters', 'ab');

  it.each([undefined, ''])('takes %j for the first page', (pageId) => {
    expect(parsePageId('letters', pageId, String)).toBeNull();
  });

  it.each([
    '!!!',
    'YQ==',
    `${OWN}=`,
    OWN.slice(0, -1),
    OWN.slice(1),
    `${OWN}AAAA`,
    OWN.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
    encodePageId('numbers', 'ab'),
    encodePageId('letters', 'a\0b'),
    Buffer.from('ab').toString('base64url'),
    Buffer.from([0xff, 0xfe]).toString('base64url'),
    'a'.repeat(2000),
  ])('refuses %j', (pageId) => {
    expect(() => parsePageId('letters', pageId, String)).toThrow(InvalidInputError);
  });

  it.each(['', '-1', '01', '1e3', '11', '12345678901'])('refuses the number %j', (number) => {
    const pageId = encodePageId('numbers', number);

    expect(() => parsePageId('numbers', pageId, parseNumberCursor(10))).toThrow(InvalidInputError);
  });
});

const CURSOR = { at: '2026-11-21T09:30:00.123456Z', id: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' };

describe('parseTimeCursor', () => {
  it('reads what formatTimeCursor wrote', () => {
    expect(parseTimeCursor(formatTimeCursor(CURSOR))).toEqual(CURSOR);
  });

  it.each([
    ['an empty text', ''],
    ['another cursor', 'ada@example.com'],
    ['a day that there is not', `2026-02-30T09:30:00.123456Z ${CURSOR.id}`],
    ['an hour that there is not', `2026-02-20T29:30:00.123456Z ${CURSOR.id}`],
    ['the year 0, which PostgreSQL does not have', `0000-02-20T09:30:00.123456Z ${CURSOR.id}`],
    ['no id', CURSOR.at],
    ['something behind it', `${formatTimeCursor(CURSOR)} x`],
  ])('refuses %s', (_name, text) => {
    expect(parseTimeCursor(text)).toBeNull();
  });
});
