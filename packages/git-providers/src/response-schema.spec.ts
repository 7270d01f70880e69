import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { list, listOrNull, name, object, requiredList, requiredText, text } from './response-schema.js';

const element = z.object({ name: requiredText });
const fitting = { name: 'a' };

describe('response schemas', () => {
  it.each([
    ['list', list(element), []],
    ['listOrNull', listOrNull(element), null],
  ])('%s reads what is no list as none', (_name, schema, none) => {
    expect(schema.parse({ length: 1 })).toEqual(none);
  });

  it.each([
    ['list', list(element), list(element, 3)],
    ['listOrNull', listOrNull(element), listOrNull(element, 3)],
    ['requiredList', requiredList(element), requiredList(element, 3)],
  ])('%s looks at a page, and drops what does not fit', (_name, page, three) => {
    expect(page.parse([{}, fitting, null, 5])).toEqual([fitting]);
    expect(page.parse(Array.from({ length: 10_000 }, () => fitting))).toHaveLength(100);
    expect(page.parse([...Array.from({ length: 10_000 }, () => ({})), fitting])).toEqual([]);
    expect(three.parse([{}, {}, fitting, fitting])).toEqual([fitting]);
  });

  it.each([
    ['a text', text, 8_192],
    ['a name', name, 512],
  ])('%s that no git server would send is none', (_name, schema, longest) => {
    expect(object({ it: schema }).parse({ it: 'x'.repeat(longest) }).it).toHaveLength(longest);
    expect(object({ it: schema }).parse({ it: 'x'.repeat(longest + 1) }).it).toBeNull();
  });
});
