import { describe, expect, it } from '@jest/globals';
import { JsonBoundsError, type JsonBoundsProblem, JsonOutline } from './json-outline.js';

const BOUNDS = { depth: 4, values: 10 };

/** @param chunkSize bytes in each piece; the outline must not depend on it */
function outlineOf(text: string, chunkSize = text.length): JsonOutline {
  const outline = new JsonOutline(BOUNDS);
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += chunkSize) {
    outline.push(bytes.subarray(start, start + chunkSize));
  }
  return outline;
}

function problemOf(text: string, chunkSize?: number): JsonBoundsProblem | null {
  try {
    outlineOf(text, chunkSize);
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
