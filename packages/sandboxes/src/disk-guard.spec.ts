import { beforeEach, describe, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { until } from '../../../test/support/until.js';
import { DiskGuard, type GuardedSandboxes } from './disk-guard.js';

const MEGABYTE = 1024 * 1024;
const MINUTE = 60_000;

/** Sandboxes that are only numbers. */
class CountedSandboxes implements GuardedSandboxes {
  readonly sizes = new Map<string, number | null>();
  readonly frozen = new Set<string>();
  readonly ended: string[] = [];
  readonly causes: string[] = [];
  measures = 0;
  /** Whether all stood still when they were measured. */
  stoodStill = true;

  async running(): Promise<string[]> {
    return [...this.sizes.keys()];
  }

  async measure(id: string): Promise<number | null> {
    this.measures += 1;
    this.stoodStill &&= this.frozen.size === this.sizes.size;
    const size = this.sizes.get(id) ?? null;
    return size === null ? null : size * MEGABYTE;
  }

  async countFiles(id: string): Promise<number | null> {
    const size = this.sizes.get(id) ?? null;
    return size === null ? null : size * 1000;
  }

  async freeze(id: string): Promise<void> {
    this.frozen.add(id);
  }

  async thaw(id: string): Promise<void> {
    this.frozen.delete(id);
  }

  async end(id: string, cause: string): Promise<void> {
    this.sizes.delete(id);
    this.ended.push(id);
    this.causes.push(cause);
  }
}

describe('the guard of a disk', () => {
  let now: number;
  let sandboxes: CountedSandboxes;
  let guard: DiskGuard;

  beforeEach(() => {
    now = 0;
    sandboxes = new CountedSandboxes();
    const options = { disk: 'the disk', reserveBytes: 500 * MEGABYTE, sandboxBytes: 1000 * MEGABYTE };
    guard = new DiskGuard(options, sandboxes, () => now);
  });

  const check = async (freeMegabytes: number, freeFiles: number | null = null) =>
    await guard.check({ freeBytes: freeMegabytes * MEGABYTE, totalBytes: 10_000 * MEGABYTE, freeFiles });

  /** Lets it measure all in turns, with room on the disk. */
  async function measureAll(): Promise<void> {
    now += 2 * MINUTE;
    for (let left = sandboxes.sizes.size; left > 0; left -= 1) {
      const before = sandboxes.measures;
      await until(async () => {
        now += 6_000;
        await check(5000);
        return sandboxes.measures > before;
      });
    }
  }

  it('measures one sandbox at a time, and seldom, while there is room', async () => {
    sandboxes.sizes.set('a', 1).set('b', 1);
    await measureAll();
    for (let times = 0; times < 60; times += 1) {
      now += 500;
      await check(5000);
    }
    expect(sandboxes.measures).toBe(2);
    expect(sandboxes.ended).toEqual([]);
  });

  it('ends the sandbox that grew, not the largest one, and lets the others go on', async () => {
    sandboxes.sizes.set('large', 900).set('small', 10).set('other', 20);
    await measureAll();
    sandboxes.sizes.set('large', 905).set('small', 300);
    sandboxes.stoodStill = true;
    await check(499);
    expect(sandboxes.ended).toEqual(['small']);
    expect(sandboxes.causes).toEqual([
      'It was stopped because it was filling the disk: the disk has 499 MB free, and 500 MB are kept for the service; its files take 300 MB. Delete the sandbox, or resume it when there is room again and delete files.',
    ]);
    expect(sandboxes.stoodStill).toBe(true);
    expect([...sandboxes.frozen]).toEqual([]);
  });

  it('lets all go on where one cannot be frozen', async () => {
    sandboxes.sizes.set('odd', 1).set('slow', 1);
    sandboxes.freeze = async (id) => {
      if (id === 'odd') {
        throw new Error('the engine refuses');
      }
      await turn();
      sandboxes.frozen.add(id);
    };
    await expect(check(499)).rejects.toThrow('the engine refuses');
    expect([...sandboxes.frozen]).toEqual([]);
    await turn();
    expect([...sandboxes.frozen]).toEqual([]);
  });

  it('thaws one again whose thaw failed, until it succeeds', async () => {
    sandboxes.sizes.set('odd', 1).set('other', 1);
    const thaw = sandboxes.thaw.bind(sandboxes);
    let failures = 2;
    sandboxes.thaw = async (id) => {
      if (id === 'odd' && failures > 0) {
        failures -= 1;
        throw new Error('the engine is busy');
      }
      await thaw(id);
    };
    await expect(check(499)).rejects.toThrow('the engine is busy');
    await expect(check(499)).rejects.toThrow('the engine is busy');
    expect([...sandboxes.frozen]).toEqual(['odd']);
    await check(5000);
    expect([...sandboxes.frozen]).toEqual([]);
  });

  it('acts again only when the disk goes on filling', async () => {
    sandboxes.sizes.set('a', 300).set('b', 200);
    await check(400);
    await check(400);
    await check(399);
    expect(sandboxes.ended).toEqual(['a']);
    sandboxes.sizes.set('b', 400);
    await check(300);
    expect(sandboxes.ended).toEqual(['a', 'b']);
    await check(5000);
    sandboxes.sizes.set('c', 200);
    await check(400);
    expect(sandboxes.ended).toEqual(['a', 'b', 'c']);
  });

  it('ends nobody when something else fills the disk', async () => {
    sandboxes.sizes.set('a', 300);
    await measureAll();
    await check(100);
    expect(sandboxes.ended).toEqual([]);
    expect([...sandboxes.frozen]).toEqual([]);
  });

  it('ends what has most files on a disk that takes no more of them, first what cannot be counted', async () => {
    sandboxes.sizes.set('a', 300).set('b', 0).set('countless', null);
    await check(5000, 5000);
    await check(5000, 4900);
    expect(sandboxes.ended).toEqual(['countless']);
    expect(sandboxes.causes[0]).toContain(
      'the disk has no room for more files; it has too many files to count',
    );
    await check(5000, 1000);
    await check(5000, 10);
    expect(sandboxes.ended).toEqual(['countless', 'a']);
    expect(sandboxes.causes[1]).toContain('it has 300000 files');
  });

  it('ends a sandbox above its limit, and leaves time to delete files after a resume', async () => {
    sandboxes.sizes.set('a', 1001);
    await measureAll();
    await until(() => sandboxes.ended.length > 0);
    expect(sandboxes.causes[0]).toContain('its files take 1001 MB and 1000 MB are allowed');
    sandboxes.sizes.set('a', 1002);
    await measureAll();
    expect(sandboxes.ended).toEqual(['a']);
    sandboxes.sizes.set('a', 1200);
    await measureAll();
    await until(() => sandboxes.ended.length === 2);
    sandboxes.sizes.set('a', 1200);
    now += 11 * MINUTE;
    await measureAll();
    await until(() => sandboxes.ended.length === 3);
  });

  it('does nothing where the disk cannot be seen', async () => {
    await guard.check(null);
    expect(sandboxes.measures).toBe(0);
  });
});
