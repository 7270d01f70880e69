import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { useFolder } from '../../../test/support/use-folder.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { loadHostId } from './host-identity.js';

describe('loadHostId', () => {
  const folder = useFolder();

  it('is made once, also by many at the same time, and kept', async () => {
    const data = path.join(folder.path, 'data');
    const ids = await Promise.all(Array.from({ length: 8 }, () => loadHostId(data)));

    expect(new Set(ids).size).toBe(1);
    expect(await loadHostId(data)).toBe(ids[0]);
    expect(await readdir(data)).toEqual(['host-id']);
    expect((await readFile(path.join(data, 'host-id'), 'utf8')).trim()).toBe(ids[0]);
  });

  it('takes what an operator wrote there', async () => {
    await writeFile(path.join(folder.path, 'host-id'), 'machine-1\n');

    expect(await loadHostId(folder.path)).toBe('machine-1');
  });

  it('refuses a file with something else, in one line', async () => {
    await writeFile(path.join(folder.path, 'host-id'), 'two words\n');

    await expect(loadHostId(folder.path)).rejects.toThrow(ConfigError);
    await expect(loadHostId(folder.path)).rejects.toThrow(/^HOST_ID: [^\n]+$/);
  });
});
