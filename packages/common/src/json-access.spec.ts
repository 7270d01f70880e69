import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { jsonAt, jsonLines, jsonList, jsonNumber, jsonText, parseJson } from './json-access.js';

const document: unknown = { a: { text: 'x', blank: '', count: 0, list: [1], none: null } };

const bytes = (pieces: string[]) => Readable.from(pieces.map((piece) => Buffer.from(piece)));

describe('json access', () => {
  it.each<[string[], unknown]>([
    [['a', 'text'], 'x'],
    [['a', 'none'], null],
    [['a', 'none', 'deeper'], undefined],
    [['a', 'list', '0'], undefined],
    [['a', 'toString'], undefined],
    [['b', 'text'], undefined],
  ])('reads %j', (path, expected) => {
    expect(jsonAt(document, ...path)).toEqual(expected);
  });

  it('returns only the requested type', () => {
    expect([
      jsonText(document, 'a', 'text'),
      jsonText(document, 'a', 'blank'),
      jsonText(document, 'a', 'count'),
    ]).toEqual(['x', null, null]);
    expect([jsonNumber(document, 'a', 'count'), jsonNumber(document, 'a', 'text')]).toEqual([0, null]);
    expect([jsonList(document, 'a', 'list'), jsonList(document, 'a')]).toEqual([[1], []]);
    expect(jsonText(null)).toBeNull();
  });

  it('parses JSON, and nothing else', () => {
    expect(['{"a":1}', 'null', '', '{"a":'].map((text) => parseJson(text))).toEqual([
      { a: 1 },
      null,
      undefined,
      undefined,
    ]);
  });

  it.each<[string, string[], unknown[]]>([
    ['a line in pieces', ['{"a":', '"é"}\n', '2\n'], [{ a: 'é' }, 2]],
    ['blank lines', ['1\n\n \r\n2\n'], [1, 2]],
    ['an end in the middle of a line', ['1\n{"a":'], [1]],
  ])('reads the lines of a stream with %s', async (_, pieces, expected) => {
    expect(await Readable.from(jsonLines(bytes(pieces))).toArray()).toEqual(expected);
  });

  it('refuses a line of a stream that is not JSON', async () => {
    await expect(Readable.from(jsonLines(bytes(['{"a"\n']))).toArray()).rejects.toThrow(SyntaxError);
  });
});
