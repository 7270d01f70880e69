import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '../config/config.error.js';
import { startFailureText } from './process-end.js';

const listenError = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code, syscall: 'listen' });

describe('startFailureText', () => {
  it.each([
    [
      'EADDRINUSE',
      'address already in use 127.0.0.1:3000',
      /127\.0\.0\.1:3000 \(.* set PORT to another port\)$/,
    ],
    ['EACCES', 'permission denied 0.0.0.0:80', /0\.0\.0\.0:80 \(.* set PORT to a port above 1023\)$/],
    ['EADDRNOTAVAIL', 'address not available 10.9.9.9', /10\.9\.9\.9 \(.* set HOST to one that it has\)$/],
    ['EINVAL', 'invalid argument', /^invalid argument$/],
  ])('says what to do when listening fails with %s', (code, message, expected) => {
    expect(startFailureText(listenError(code, message))).toMatch(expected);
  });

  it('gives what an operator can mend in a line each, and the stack of everything else', () => {
    expect(startFailureText(new ConfigError('PORT: is no port'))).not.toContain('\n');
    expect(startFailureText(new ConfigError('PORT: is no port\nHOST: is no host'))).toBe(
      '\n  PORT: is no port\n  HOST: is no host',
    );
    expect(startFailureText(new Error('a bug'))).toMatch(/a bug\n +at /);
  });
});
