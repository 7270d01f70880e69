import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { useFolder } from '../../../test/support/use-folder.js';
import {
  canReach,
  chooseUser,
  ensureSocketDirectory,
  isPermitted,
  parsePasswd,
  pathComponents,
  socketDirectoryFor,
} from './unprivileged-user.js';

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
  const base = useFolder();

  it('makes a private folder and accepts it again', async () => {
    const folder = path.join(base.path, 'run');
    await ensureSocketDirectory(folder, null);
    await ensureSocketDirectory(folder, null);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it.each([
    ['others can enter', (folder: string) => (mkdirSync(folder), chmodSync(folder, 0o755))],
    ['is a link', (folder: string) => symlinkSync(path.dirname(folder), folder)],
  ])('refuses one that %s', async (_, prepare) => {
    const folder = path.join(base.path, 'run');
    prepare(folder);
    await expect(ensureSocketDirectory(folder, null)).rejects.toThrow(/not a private folder/);
  });

  it('refuses one of another user', async () => {
    const folder = path.join(base.path, 'run');
    mkdirSync(folder, { mode: 0o700 });
    const stranger = { name: 'stranger', uid: 54_321, gid: 54_321 };
    await expect(ensureSocketDirectory(folder, stranger)).rejects.toThrow(/not a private folder/);
  });
});

const POSTGRES = { name: 'postgres', uid: 101, gid: 104 };
const NOBODY = { name: 'nobody', uid: 65_534, gid: 65_534 };
const ALICE = { name: 'alice', uid: 1000, gid: 1000 };

describe('parsePasswd', () => {
  it('reads accounts and leaves out other lines', () => {
    const text =
      'root:x:0:0:root:/root:/bin/bash\n# note\n+::::::\npostgres:x:101:104:,,,:/var:/bin/sh\nbad:x:a:b::\n';
    expect(parsePasswd(text)).toEqual([{ name: 'root', uid: 0, gid: 0 }, POSTGRES]);
  });
});

describe('chooseUser', () => {
  it.each([
    ['our own user when that is not root', 1000, null, [POSTGRES, NOBODY], null],
    ['our own user even on a cluster of another', 1000, POSTGRES, [POSTGRES], null],
    ['the owner of the cluster', 0, { uid: 1000, gid: 1000 }, [POSTGRES, ALICE], ALICE],
    ['an owner without an account', 0, { uid: 7, gid: 8 }, [POSTGRES], { name: 'uid 7', uid: 7, gid: 8 }],
    ['postgres', 0, null, [NOBODY, POSTGRES], POSTGRES],
    ['postgres when root owns the cluster', 0, { uid: 0, gid: 0 }, [POSTGRES], POSTGRES],
    ['nobody', 0, null, [ALICE, NOBODY], NOBODY],
    [
      'nobody when another account of that name is root',
      0,
      null,
      [{ name: 'postgres', uid: 0, gid: 0 }, NOBODY],
      NOBODY,
    ],
    ['nobody without any account', 0, null, [], NOBODY],
  ])('takes %s', (_, processUid, owner, accounts, expected) => {
    expect(chooseUser(processUid, owner, accounts)).toEqual(expected);
  });
});

describe('isPermitted', () => {
  it.each([
    ['owner', 0o700, 1000, 1, 1, true],
    ['owner without the bit, though others have it', 0o077, 1000, 1, 1, false],
    ['group', 0o710, 0, 1000, 1, true],
    ['group without the bit, though others have it', 0o707, 0, 1000, 1, false],
    ['others', 0o701, 0, 0, 1, true],
    ['others without the bit', 0o770, 0, 0, 1, false],
    ['read and execute', 0o755, 0, 0, 5, true],
    ['read and execute with only one of them', 0o751, 0, 0, 5, false],
  ])('%s', (_, mode, uid, gid, wanted, expected) => {
    expect(isPermitted(ALICE, { mode: 0o040_000 | mode, uid, gid }, wanted)).toBe(expected);
  });
});

describe('pathComponents', () => {
  it('lists every folder from the root down', () => {
    expect(pathComponents('/var/lib/slipway')).toEqual(['/', '/var', '/var/lib', '/var/lib/slipway']);
  });
});

describe('canReach', () => {
  let base: string;
  beforeEach(() => {
    // Not TMPDIR: that may be private, and a stranger has to get here.
    base = realpathSync(mkdtempSync(path.join('/tmp', 'slipway-reach-')));
    chmodSync(base, 0o755);
    mkdirSync(path.join(base, 'a/b'), { recursive: true });
  });
  afterEach(() => {
    rmSync(base, { recursive: true, force: true, maxRetries: 10 });
  });

  it('is stopped by one closed folder on the way', () => {
    const stranger = { name: 'stranger', uid: 54_321, gid: 54_321 };
    const target = path.join(base, 'a/b');
    expect(canReach(stranger, target)).toBe(true);
    chmodSync(path.join(base, 'a'), 0o700);
    expect(canReach(stranger, target)).toBe(false);
  });

  it('is false for what does not exist', () => {
    expect(canReach(ALICE, path.join(base, 'missing'))).toBe(false);
  });
});
