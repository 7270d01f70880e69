import { expect, it } from '@jest/globals';
import { newPlaceholder } from './placeholder.js';

it.each([
  ['ghp_0123456789abcdefABCDEFghijklmnopqrst', /^ghp_[A-Za-z0-9]{36}$/],
  ['github_pat_11ABCDEFG0abcdefghij_0123456789abcdef', /^github_pat_\w{37}$/],
  ['glpat-abcDEF0123456789_-xy', /^glpat-[\w-]{20}$/],
  ['sk-ant-api03-abcDEF0123456789', /^sk-ant-[\w-]{22}$/],
  ['sk-proj-abcDEF0123456789', /^sk-[\w-]{21}$/],
  ['acme1-abcdef0123456789', /^acme1-[a-f0-9]{16}$/],
  ['0123456789abcdef0123456789abcdef', /^slipway-[0-9a-f]{24}$/],
  ['acme1-', /^slipway-[a-z0-9-]{8}$/],
  ['acme1-abc012345', /^slipway-[a-z0-9-]{8}$/],
  ['m\u00fcll-_abcdef0123456789', /^slipway-[-_a-z0-9]{13,14}$/],
  ['hunter2', /^slipway-[a-z0-9]{8}$/],
])('of %s looks like it, and is another text each time', (value, form) => {
  const [one, other] = [newPlaceholder(value), newPlaceholder(value)];
  expect(one).toMatch(form);
  expect(one).not.toBe(other);
  expect(one).toHaveLength(Math.max(value.length, 16));
});
