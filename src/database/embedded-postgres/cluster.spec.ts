import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createPassword, ensureDataDir, openLog, readPassword } from './cluster.js';

const asRoot = process.getuid?.() === 0;
let base: string;
beforeEach(() => {
  base = mkdtempSync(path.join(tmpdir(), 'slipway-folder-'));
});
afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

describe('ensureDataDir', () => {
  it('makes a private folder', async () => {
    await ensureDataDir(path.join(base, 'a/data'), null);
    expect(statSync(path.join(base, 'a/data')).mode & 0o777).toBe(0o700);
  });

  it('says which folder cannot be made', async () => {
    writeFileSync(path.join(base, 'file'), '');
    await expect(ensureDataDir(path.join(base, 'file/data'), null)).rejects.toThrow(
      /DATA_DIR: .*file\/data.*ENOTDIR/,
    );
  });
});

describe('createPassword', () => {
  it('keeps a new password where only the owner reads it', async () => {
    const file = path.join(base, 'password');
    expect(await readPassword(file)).toBeNull();
    const password = await createPassword(file);
    expect(password).toHaveLength(32);
    expect(await readPassword(file)).toBe(password);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe('openLog', () => {
  it('continues a short log and puts a long one aside', async () => {
    const file = path.join(base, 'log');
    writeFileSync(file, 'short');
    const short = await openLog(file);
    await short.close();
    expect(short.size).toBe(5);
    writeFileSync(file, Buffer.alloc(6 * 1024 * 1024, 'x'));
    const long = await openLog(file);
    await long.close();
    expect(long.size).toBe(0);
    expect(readFileSync(`${file}.1`)).toHaveLength(6 * 1024 * 1024);
  });

  it('leaves the log to the owner of the folder, whoever starts', async () => {
    const owner = asRoot ? 12_345 : statSync(base).uid;
    chownSync(base, owner, statSync(base).gid);
    await (await openLog(path.join(base, 'log'))).close();
    expect(statSync(path.join(base, 'log')).uid).toBe(owner);
  });
});
