import { describe, expect, it } from '@jest/globals';
import { loggedPath } from './request-context.js';

const KEY = `slw_4nKxq0Zt_${'s'.repeat(43)}`;

describe('loggedPath', () => {
  it.each([
    ['/', '/'],
    ['/api/settings', '/api/settings'],
    [`/api/settings?X-Session-API-Key=${KEY}`, '/api/settings'],
    [
      '/api/v1/users/0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
      '/api/v1/users/0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
    ],
    [`/api/v1/api-keys/${KEY}`, '/api/v1/api-keys/(56 characters)'],
    [`/${KEY}/x?${KEY}`, '/(56 characters)/x'],
  ])('writes %s as %s', (address, expected) => {
    expect(loggedPath(address)).toBe(expected);
  });
});
