import { describe, expect, it } from '@jest/globals';
import { ifNoneMatch } from './response-headers.js';

describe('ifNoneMatch', () => {
  it.each([
    [undefined, false],
    ['', false],
    ['"abc"', true],
    ['W/"abc"', true],
    ['"x", "abc" , "y"', true],
    ['*', true],
    ['"abcd"', false],
    ['abc', false],
    ['"x"', false],
  ])('%j: %s', (header, expected) => {
    expect(ifNoneMatch(header, '"abc"')).toBe(expected);
  });
});
