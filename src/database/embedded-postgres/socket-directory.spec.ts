import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ensureSocketDirectory, socketDirectoryFor } from './socket-directory.js';

const ofLength = (length: number) => `/${'d'.repeat(length - 1)}`;
// "/.s.PGSQL.5432" has 14 bytes.
const PRIVATE = /^\/tmp\/slipway-[0-9a-f]{16}$/;

describe('socketDirectoryFor', () => {
  it.each([
    ['linux', ofLength(93), true],
    ['linux', ofLength(94), false],
    ['darwin', ofLength(89), true],
    ['darwin', ofLength(90), false],
    ['linux', `/${'ü'.repeat(47)}`, false],
  ] as const)('on %s, %s is short enough: %s', (platform, cluster, fits) => {
    expect(socketDirectoryFor(cluster, '/tmp', platform) === cluster).toBe(fits);
    expect(PRIVATE.test(socketDirectoryFor(cluster, '/tmp', platform))).toBe(!fits);
  });

  it('uses /tmp when the folder for temporary files is too long as well', () => {
    expect(socketDirectoryFor(ofLength(200), ofLength(90), 'linux')).toMatch(PRIVATE);
  });

  it('gives every cluster a folder of its own, always the same', () => {
    const first = socketDirectoryFor(ofLength(200), '/tmp', 'linux');
    expect(socketDirectoryFor(ofLength(200), '/tmp', 'linux')).toBe(first);
    expect(socketDirectoryFor(ofLength(201), '/tmp', 'linux')).not.toBe(first);
  });
});

describe('ensureSocketDirectory', () => {
  let base: string;
  beforeEach(() => {
    base = mkdtempSync(path.join(tmpdir(), 'slipway-socket-'));
  });
  afterEach(() => {
    rmSync(base, { recursive: true, force: true });
  });

  it('makes a private folder and accepts it again', async () => {
    const folder = path.join(base, 'run');
    await ensureSocketDirectory(folder, null);
    await ensureSocketDirectory(folder, null);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it.each([
    ['others can enter', (folder: string) => (mkdirSync(folder), chmodSync(folder, 0o755))],
    ['is a link', (folder: string) => symlinkSync(path.dirname(folder), folder)],
  ])('refuses one that %s', async (_, prepare) => {
    const folder = path.join(base, 'run');
    prepare(folder);
    await expect(ensureSocketDirectory(folder, null)).rejects.toThrow(/not a private folder/);
  });

  it('refuses one of another user', async () => {
    const folder = path.join(base, 'run');
    mkdirSync(folder, { mode: 0o700 });
    const stranger = { name: 'stranger', uid: 54_321, gid: 54_321 };
    await expect(ensureSocketDirectory(folder, stranger)).rejects.toThrow(/not a private folder/);
  });
});
