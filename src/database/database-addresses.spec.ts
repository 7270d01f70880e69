import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '../config/config.error.js';
import { findDatabase } from './database-addresses.js';

describe('the address of the database', () => {
  it.each([
    ['a password with #', 'postgres://slipway:hush#hush@db/slipway', /as %23/],
    ['a port that is none', 'postgres://slipway:hush@db:port/slipway', /^DATABASE_URL: cannot be read/],
    ['no such certificate', 'postgres://db/x?sslmode=verify-full&sslrootcert=/nope', /\/nope/],
  ])('is refused for %s with one line that names the variable', async (_what, url, expected) => {
    const refusal = findDatabase(url, null).catch((error: unknown) => error);

    expect(await refusal).toBeInstanceOf(ConfigError);
    expect(String(await refusal)).toMatch(/DATABASE_URL: cannot be read: [^\n]*$/);
    expect(((await refusal) as ConfigError).message).toMatch(expected);
    expect(String(await refusal)).not.toContain('hush');
  });
});
