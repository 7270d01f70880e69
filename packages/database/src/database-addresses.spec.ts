import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { findDatabase, unreachable } from './database-addresses.js';

describe('the address of the database', () => {
  it.each([
    ['a password with #', 'postgres://slipway:hush#hush@db/slipway', /as %23/],
    ['a port that is none', 'postgres://slipway:hush@db:port/slipway', /^DATABASE_URL: cannot be read/],
    ['several hosts', 'postgres://slipway:hush@one:5432,two:5432/slipway', /one host/],
    ['no such certificate', 'postgres://db/x?sslmode=verify-full&sslrootcert=/nope', /\/nope/],
  ])('is refused for %s with one line that names the variable', async (_what, url, expected) => {
    const refusal = findDatabase(url, null).catch((error: unknown) => error);

    expect(await refusal).toBeInstanceOf(ConfigError);
    expect(String(await refusal)).toMatch(/DATABASE_URL: cannot be read: [^\n]*$/);
    expect(((await refusal) as ConfigError).message).toMatch(expected);
    expect(String(await refusal)).not.toContain('hush');
  });

  it.each([
    [
      'SELF_SIGNED_CERT_IN_CHAIN',
      'self-signed certificate in certificate chain',
      /sslrootcert=FILE.*no-verify/,
    ],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate', /sslrootcert=FILE/],
    ['28000', 'no pg_hba.conf entry for host "::1", user "u", database "d", no encryption', /add \?sslmode=/],
    ['28P01', 'password authentication failed for user "u"', /failed for user "u"$/],
  ])('says what to add to it after %s', (code, message, expected) => {
    const { message: line } = unreachable('DATABASE_URL', Object.assign(new Error(message), { code }));

    expect(line).toContain(message);
    expect(line).toMatch(expected);
  });
});
