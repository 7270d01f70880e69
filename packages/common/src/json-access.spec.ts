import { describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonNumber, jsonText, parseJson } from './json-access.js';

const document: unknown = { a: { text: 'x', blank: '', count: 0, list: [1], none: null } };

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
});
