import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { HostileWorld } from './hostile-world.js';

const EVERY_MS = 10;
export const MIB = 1024 * 1024;
/** What another user may wait for, 99 times of 100. */
const MAX_P99_MS = 250;

/** How long another tenant and the probes wait while a service is attacked, and what memory it takes meanwhile. */
export class ResponseTimes {
  private readonly settings: number[] = [];
  private readonly probes: number[] = [];
  private failures = 0;
  private stopped = false;
  private readonly before: number;
  private highest: number;
  private readonly sampling: Promise<unknown>;

  private constructor(private readonly world: HostileWorld) {
    this.before = residentBytes(world.service.pid);
    this.highest = this.before;
    this.sampling = Promise.all([
      this.sample(this.settings, async () => (await world.alice.send('GET', '/api/settings')).status === 200),
      this.sample(this.probes, async () => (await world.pulse()) !== null),
    ]);
  }

  static watch(world: HostileWorld): ResponseTimes {
    return new ResponseTimes(world);
  }

  /** How often the other tenant was answered so far. */
  get samples(): number {
    return this.settings.length;
  }

  /** Ends the watch. `seen`: waiting times in milliseconds, and by how much the memory of the service grew. */
  async end(maxGrowthMib: number): Promise<{ held: boolean; seen: string }> {
    this.stopped = true;
    await this.sampling;
    const growth = Math.round((this.highest - this.before) / MIB);
    return {
      held: this.failures === 0 && growth < maxGrowthMib && quantile(this.settings, 0.99) < MAX_P99_MS,
      seen: `settings ${described(this.settings)}, live ${described(this.probes)}, ${this.failures} failed, +${growth} MiB`,
    };
  }

  private async sample(times: number[], ask: () => Promise<boolean>): Promise<void> {
    while (!this.stopped) {
      const since = performance.now();
      if (await ask()) {
        times.push(performance.now() - since);
      } else {
        this.failures += 1;
      }
      this.highest = Math.max(this.highest, residentBytes(this.world.service.pid));
      // An attack that fails ends no watch, which must not keep this program alive.
      await wait(EVERY_MS, undefined, { ref: false });
    }
  }
}

export function described(times: readonly number[]): string {
  const [p50, p99, max] = [0.5, 0.99, 1].map((share) => Math.round(quantile(times, share)));
  return `p50 ${p50} p99 ${p99} max ${max} ms`;
}

export function quantile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Infinity;
}

/** What a process has in memory. */
export function residentBytes(pid: number): number {
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}
