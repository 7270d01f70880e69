import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { useFolder } from '../../../test/support/use-folder.js';
import { createPassword, openLog, readPassword } from './cluster.js';

const asRoot = process.getuid?.() === 0;
const folder = useFolder();

describe('createPassword', () => {
  it('keeps a new password where only the owner reads it', async () => {
    const file = path.join(folder.path, 'password');
    expect(await readPassword(file)).toBeNull();
    const password = await createPassword(file);
    expect(password).toHaveLength(32);
    expect(await readPassword(file)).toBe(password);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe('openLog', () => {
  it('continues a short log and puts a long one aside', async () => {
    const file = path.join(folder.path, 'log');
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
    const owner = asRoot ? 12_345 : statSync(folder.path).uid;
    chownSync(folder.path, owner, statSync(folder.path).gid);
    await (await openLog(path.join(folder.path, 'log'))).close();
    expect(statSync(path.join(folder.path, 'log')).uid).toBe(owner);
  });
});
