import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { namedValues } from './named-values.js';

const schema = namedValues(z.string().regex(/^\w+$/, 'A name has letters'), z.string());
/** What every object inherits, and names that look like it. */
const NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
];

describe('namedValues', () => {
  it.each(NAMES)('keeps a member named %s', (name) => {
    const parsed = schema.parse(JSON.parse(`{"${name}":"value","other":"x"}`));

    expect(Object.entries(parsed)).toEqual([
      [name, 'value'],
      ['other', 'x'],
    ]);
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect(JSON.parse(JSON.stringify(parsed))).toEqual(parsed);
  });

  it.each<[string, unknown, unknown]>([
    ['a bad value', { a: 'x', __b: 5 }, [{ path: ['__b'] }]],
    ['a bad name', { 'a b': 'x' }, [{ path: ['a b'], message: 'A name has letters' }]],
    ['a list', ['x'], [{ path: [], message: 'Input should be an object' }]],
    ['a text', 'x', [{ path: [], message: 'Input should be an object' }]],
    ['null', null, [{ path: [], message: 'Input should be an object' }]],
  ])('says where %s is', (_name, given, issues) => {
    expect(schema.safeParse(given).error?.issues).toMatchObject(issues as object[]);
  });

  it('reads what may be left out', () => {
    expect(z.object({ a: schema.optional(), b: schema.nullish() }).parse({ b: null })).toEqual({ b: null });
  });
});
