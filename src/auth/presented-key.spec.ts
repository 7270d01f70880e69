import { describe, expect, it } from '@jest/globals';
import { presentedBesideSandboxKey, presentedKey } from './api-key-format.js';

describe('presentedKey', () => {
  it.each([
    [{}, null],
    [{ 'x-session-api-key': 'a' }, 'a'],
    [{ 'x-access-token': 'b' }, 'b'],
    [{ authorization: 'Bearer c' }, 'c'],
    [{ authorization: 'bearer c' }, 'c'],
    [{ authorization: 'Basic c' }, null],
    [{ authorization: 'Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln' }, null],
    [{ 'x-session-api-key': 'a', 'x-access-token': 'b', authorization: 'Bearer c' }, 'a'],
    [{ 'x-access-token': 'b', authorization: 'Bearer c' }, 'b'],
    [{ 'x-session-api-key': '', authorization: 'Bearer c' }, ''],
  ])('of %j is %j', (headers, key) => {
    expect(presentedKey(headers)).toBe(key);
  });
});

describe('presentedBesideSandboxKey', () => {
  it.each([
    [{}, null],
    [{ 'x-session-api-key': 'a' }, 'a'],
    [{ 'x-session-api-key': 'a', authorization: 'Bearer c' }, 'c'],
    [{ 'x-session-api-key': 'a', 'x-access-token': 'b', authorization: 'Bearer c' }, 'b'],
    [{ 'x-session-api-key': 'a', authorization: 'Basic c' }, 'a'],
    [{ 'x-session-api-key': 'a', authorization: 'Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln' }, 'a'],
  ])('of %j is %j', (headers, key) => {
    expect(presentedBesideSandboxKey(headers)).toBe(key);
  });
});
