import { describe, expect, it } from '@jest/globals';
import { classifyConnectError } from './postmaster.js';

describe('classifyConnectError', () => {
  it.each([
    ['ENOENT', 'absent'],
    ['ECONNREFUSED', 'absent'],
    ['3D000', 'no database'],
    ['57P03', 'not ready'],
    ['57P01', 'not ready'],
    ['53300', 'not ready'],
    ['ECONNRESET', 'not ready'],
    ['28P01', null],
    ['EACCES', null],
  ])('%s: %s', (code, expected) => {
    expect(classifyConnectError(Object.assign(new Error('no'), { code }))).toBe(expected);
  });

  it.each([
    ['Connection terminated unexpectedly', 'not ready'],
    ['timeout expired', 'not ready'],
    ['something else', null],
  ])('an error without code, "%s": %s', (message, expected) => {
    expect(classifyConnectError(new Error(message))).toBe(expected);
  });
});
