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
import { prepareBinaries } from './binaries.js';

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
  rmSync(base, { recursive: true, force: true });
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
