import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConfigError } from '../../config/config.error.js';
import { loadHostId } from './host-identity.js';

describe('loadHostId', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'slipway-host-'));
  });

  afterEach(async () => {
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  it('is made once, also by many at the same time, and kept', async () => {
    const data = path.join(folder, 'data');
    const ids = await Promise.all(Array.from({ length: 8 }, () => loadHostId(data)));

    expect(new Set(ids).size).toBe(1);
    expect(await loadHostId(data)).toBe(ids[0]);
    expect(await readdir(data)).toEqual(['host-id']);
    expect((await readFile(path.join(data, 'host-id'), 'utf8')).trim()).toBe(ids[0]);
  });

  it('takes what an operator wrote there', async () => {
    await writeFile(path.join(folder, 'host-id'), 'machine-1\n');

    expect(await loadHostId(folder)).toBe('machine-1');
  });

  it('refuses a file with something else, in one line', async () => {
    await writeFile(path.join(folder, 'host-id'), 'two words\n');

    await expect(loadHostId(folder)).rejects.toThrow(ConfigError);
    await expect(loadHostId(folder)).rejects.toThrow(/^HOST_ID: [^\n]+$/);
  });
});
