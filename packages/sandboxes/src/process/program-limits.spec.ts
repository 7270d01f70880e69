import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { useFolder } from '../../../../test/support/use-folder.js';
import { Cgroups } from './cgroups.js';
import { ProgramLimits } from './program-limits.js';

const MINUTE_MS = 60_000;

describe('ProgramLimits.removeStale', () => {
  const place = useFolder();
  let cgroups: Cgroups;
  let limits: ProgramLimits;

  beforeEach(async () => {
    const folder = place.path;
    await Promise.all(['mine.run', 'other.run'].map(async (name) => await mkdir(path.join(folder, name))));
    cgroups = new Cgroups([{ version: 1, resources: ['pids'], folder }]);
    limits = new ProgramLimits({ processes: 100, openFiles: 100, fileMb: 0, cpu: 1, memoryMb: 100 }, cgroups);
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  const recordOf =
    (runs: Record<string, string>) =>
    async (id: string): Promise<string | null> =>
      await Promise.resolve(runs[id] ?? null);

  it('keeps the group of a program that runs', async () => {
    for (const now of [0, MINUTE_MS, 2 * MINUTE_MS]) {
      await limits.removeStale(recordOf({ mine: 'run', other: 'run' }), now);
    }
    expect((await cgroups.names()).toSorted()).toEqual(['mine.run', 'other.run']);
  });

  it.each([
    ['has ended', {}],
    ['runs again, in another group', { other: 'later' }],
  ])('removes the group of a sandbox that %s, once it has had no record for a minute', async (_, runs) => {
    const records = recordOf({ mine: 'run', ...runs });
    await limits.removeStale(records, 5);
    await limits.removeStale(records, MINUTE_MS);
    expect((await cgroups.names()).toSorted()).toEqual(['mine.run', 'other.run']);
    await limits.removeStale(records, MINUTE_MS + 5);
    expect(await cgroups.names()).toEqual(['mine.run']);
  });

  it('keeps the group of a start whose record comes late, as long as it may take', async () => {
    await limits.removeStale(recordOf({ mine: 'run' }), 0);
    await limits.removeStale(recordOf({ mine: 'run', other: 'run' }), MINUTE_MS);
    await limits.removeStale(recordOf({ mine: 'run' }), 2 * MINUTE_MS);
    expect((await cgroups.names()).toSorted()).toEqual(['mine.run', 'other.run']);
  });

  it('keeps a group that was just made although the clock of the machine is an hour ahead', async () => {
    const ahead = Date.now() + 60 * MINUTE_MS;
    jest.spyOn(Date, 'now').mockReturnValue(ahead);
    await limits.removeStale(recordOf({}));
    expect((await cgroups.names()).toSorted()).toEqual(['mine.run', 'other.run']);
  });
});
