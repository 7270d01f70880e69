import { describe, expect, it } from '@jest/globals';
import { type JsonBounds, JsonBoundsError, type JsonBoundsProblem, JsonOutline } from './json-outline.js';

const BOUNDS = { depth: 4, values: 10 };

/** @param chunkSize bytes in each piece; the outline must not depend on it */
function outlineOf(text: string, chunkSize = text.length, bounds: JsonBounds = BOUNDS): JsonOutline {
  const outline = new JsonOutline(bounds);
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += chunkSize) {
    outline.push(bytes.subarray(start, start + chunkSize));
  }
  return outline;
}

function problemOf(text: string, chunkSize?: number, bounds?: JsonBounds): JsonBoundsProblem | null {
  try {
    outlineOf(text, chunkSize, bounds);
    return null;
  } catch (error) {
    expect(error).toBeInstanceOf(JsonBoundsError);
    return (error as JsonBoundsError).problem;
  }
}

describe('JsonOutline', () => {
  it.each<[string, string, JsonBoundsProblem | null]>([
    ['four levels', '[[[[]]]]', null],
    ['five levels', '[[[[[', 'depth'],
    ['five levels of objects', '{"a":{"a":{"a":{"a":{', 'depth'],
    ['brackets in texts', '["[[[[[[[[[[[[", "{{{{{{{{{"]', null],
    ['a text with an escaped quotation mark', '["\\"[[[[[[[[[[[[[["]', null],
    ['a text that ends in an escaped backslash', '["\\\\",[[[[', 'depth'],
    ['ten values', '[0,0,0,0,0,0,0,0,0,0]', null],
    ['eleven values', '[0,0,0,0,0,0,0,0,0,0,0]', 'values'],
    ['keys beside their values', '{"a":0,"b":0,"c":0,"d":0,"e":0}', null],
    ['one key more', '{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0}', 'values'],
    ['commas in a text', '",,,,,,,,,,,,,,,,,"', null],
    ['empty objects', '[{},{},{},{},{},{}]', 'values'],
    ['a bracket that closes nothing', '[]]', 'syntax'],
    ['a bracket of the other kind', '[}', 'syntax'],
  ])('%s, in pieces of any size', (_name, text, problem) => {
    for (const size of [1, 2, 3, text.length]) {
      expect(problemOf(text, size)).toBe(problem);
    }
  });

  it.each<[string, string, JsonBoundsProblem | null]>([
    ['two elements', '[0,0]', null],
    ['three elements', '[0,0,0]', 'elements'],
    ['two elements in each list', '[[0,0],[0,0]]', null],
    ['three elements in a list inside another', '[0,[0,0,0]]', 'elements'],
    ['three elements, a list among them', '[0,[],0]', 'elements'],
    ['three members', '{"a":0,"b":0,"c":0}', 'elements'],
    ['commas in a text', '[",,,,,"]', null],
    ['values without a list', '0,0,0', 'elements'],
  ])('at most two in a list: %s', (_name, text, problem) => {
    for (const size of [1, 2, text.length]) {
      expect(problemOf(text, size, { depth: 4, values: 100, elements: 2 })).toBe(problem);
    }
  });

  it.each<[string, string | null, boolean]>([
    ['', null, true],
    [' \r\n\t', null, true],
    [' [1]', 'list', true],
    ['{"a":[1]}', 'object', true],
    ['"[', 'other', false],
    ['[{}', 'list', false],
    ['5', 'other', true],
  ])('knows what %j holds and whether it is closed', (text, kind, isClosed) => {
    expect(outlineOf(text)).toMatchObject({ kind, isClosed });
  });

  it.each([
    ['"\\u0000"', true],
    ['"\\\\u0000"', false],
    ['"\\n"', false],
    ['"u"', false],
  ])('says of %s whether it has Unicode escapes', (text, expected) => {
    expect(outlineOf(text, 1).hasUnicodeEscapes).toBe(expected);
  });
});
