import { describe, expect, it } from '@jest/globals';
import { isLoopbackHost } from './host-allowlist.js';

describe('isLoopbackHost', () => {
  it.each([
    'localhost',
    'LOCALHOST',
    'localhost.',
    'app.localhost',
    '127.0.0.1',
    '127.1.2.3',
    '::1',
    '[::1]',
    '::ffff:127.0.0.1',
    '[::ffff:7f00:1]',
  ])('is %s', (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  });

  it.each([
    '',
    'example.com',
    'localhost.example.com',
    'notlocalhost',
    '127.example.com',
    '127.0.0.1.example.com',
    '127.1',
    '0.0.0.0',
    '::',
    '[::]',
    '10.0.0.1',
    '::ffff:10.0.0.1',
    '[::1',
  ])('is not %j', (host) => {
    expect(isLoopbackHost(host)).toBe(false);
  });
});
