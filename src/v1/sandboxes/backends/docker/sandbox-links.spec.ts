import { expect, it } from '@jest/globals';
import { subnetsOf } from './sandbox-links.js';

it.each([
  ['198.18.7.77/27', ['198.18.7.64/28', '198.18.7.80/28']],
  ['10.0.0.0/26', ['10.0.0.0/28', '10.0.0.16/28', '10.0.0.32/28', '10.0.0.48/28']],
])('are all of %s, each once', (range, expected) => {
  expect(subnetsOf(range).toSorted()).toEqual(expected);
});

it('are some of a large range, from anywhere in it', () => {
  const subnets = subnetsOf('223.0.0.0/8');
  expect(new Set(subnets).size).toBe(256);
  expect(subnets).toEqual(subnets.map(() => expect.stringMatching(/^223(\.\d{1,3}){3}\/28$/)));
  expect(subnetsOf('223.0.0.0/8')).not.toEqual(subnets);
});
