import { describe, expect, it } from '@jest/globals';
import { pickSandboxUser, isInRange, usableUserRange } from './isolation.js';

const WHOLE = '         0          0 4294967295\n';
const CONTAINER = '0 100000 65536\n';

describe('usableUsers', () => {
  it.each([
    ['a machine', [WHOLE, WHOLE], 0x7000_0000],
    ['a container with the usual numbers', [CONTAINER, CONTAINER], 30_000],
    ['a container with fewer groups than users', [WHOLE, CONTAINER], 30_000],
    ['a namespace of two parts', ['0 1000 1\n1 100000 65536\n', WHOLE], 30_000],
    ['a namespace of one user', ['0 1000 1\n', '0 1000 1\n'], undefined],
    ['nothing known', ['', ''], undefined],
  ])('%s', (_, maps, first) => {
    expect(usableUserRange(...maps)?.first).toBe(first);
  });
});

describe('pickSandboxUser', () => {
  const range = { first: 100, count: 3 };

  it('is stable and within the range', () => {
    const user = pickSandboxUser('a', range, new Set());
    expect(pickSandboxUser('a', range, new Set())).toBe(user);
    expect(isInRange(user, range)).toBe(true);
  });

  it('picks another one when it is taken, until none is left', () => {
    const taken = new Set<number>();
    for (let round = 0; round < 3; round += 1) {
      taken.add(pickSandboxUser('a', range, taken));
    }
    expect(taken).toEqual(new Set([100, 101, 102]));
    expect(() => pickSandboxUser('a', range, taken)).toThrow('taken');
  });
});

it.each([
  [99, false],
  [100, true],
  [102, true],
  [103, false],
])('isInRange(%d) is %s', (user, expected) => {
  expect(isInRange(user, { first: 100, count: 3 })).toBe(expected);
});
