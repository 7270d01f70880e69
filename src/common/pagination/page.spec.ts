import { describe, expect, it } from '@jest/globals';
import { decodePageId, toPage } from './page.js';

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
