import { describe, expect, it } from '@jest/globals';
import { mapLeaves, mergePatch, without } from './json-access.js';

describe('mergePatch', () => {
  it.each([
    ['{}', '{"a":1}', '{"a":1}'],
    ['{"a":1,"b":2}', '{"a":null}', '{"b":2}'],
    ['{"a":{"x":1,"y":2}}', '{"a":{"x":null,"z":3}}', '{"a":{"y":2,"z":3}}'],
    ['{"a":1}', '{"a":{"x":1}}', '{"a":{"x":1}}'],
    ['{"a":{"x":1}}', '{"a":[1]}', '{"a":[1]}'],
    ['{"a":[1,2]}', '{"a":[3]}', '{"a":[3]}'],
    ['{}', '{"a":{"b":null}}', '{"a":{}}'],
    ['{}', '{"__proto__":{"polluted":true}}', '{"__proto__":{"polluted":true}}'],
  ])('%s with %s', (base, patch, expected) => {
    const merged = mergePatch(JSON.parse(base), JSON.parse(patch));
    expect(JSON.stringify(merged)).toBe(expected);
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype);
  });
});

describe('mapLeaves', () => {
  it('visits every leaf with its path', () => {
    const seen: string[] = [];
    const copy = mapLeaves({ a: { b: 1 }, c: [{ d: 'x' }, null] }, (path, leaf) => {
      seen.push(path.join('.'));
      return leaf === 'x' ? '*' : leaf;
    });

    expect(seen).toEqual(['a.b', 'c.0.d', 'c.1']);
    expect(copy).toEqual({ a: { b: 1 }, c: [{ d: '*' }, null] });
  });
});

describe('without', () => {
  it('leaves members out', () => {
    expect(without({ a: 1, b: 2 }, ['a', 'c'])).toEqual({ b: 2 });
  });
});
