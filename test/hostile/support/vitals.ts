import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { HostileWorld } from './hostile-world.js';

const EVERY_MS = 10;
const MIB = 1024 * 1024;
/** What others may notice at most on a machine that also runs the attack. */
const MAX_PULSE_MS = 5_000;

/** How a service does while it is attacked: how fast it answers others, and what memory it takes. */
export class Vitals {
  /** Milliseconds that answers took. */
  private readonly times: number[] = [];
  private missed = 0;
  private stopped = false;
  private readonly before: number;
  private highest: number;
  private readonly sampling: Promise<void>;

  private constructor(private readonly world: HostileWorld) {
    this.before = residentBytes(world.service.pid);
    this.highest = this.before;
    this.sampling = this.sample();
  }

  static watch(world: HostileWorld): Vitals {
    return new Vitals(world);
  }

  /**
   * Ends the watch. `seen`: how long others waited, and how much memory the service took meanwhile.
   *
   * @param maxP99Ms what 99 of 100 answers may take
   */
  async end(maxGrowthMib: number, maxP99Ms = MAX_PULSE_MS): Promise<{ held: boolean; seen: string }> {
    this.stopped = true;
    await this.sampling;
    const growth = Math.round((this.highest - this.before) / MIB);
    const [p50 = 0, p99 = 0, slowest = 0] = [0.5, 0.99, 1].map((part) =>
      Math.round(quantile(this.times, part)),
    );
    return {
      held: this.missed === 0 && p99 < maxP99Ms && slowest < MAX_PULSE_MS && growth < maxGrowthMib,
      seen: `others waited ${p50} ms (p50), ${p99} ms (p99), ${slowest} ms at most, ${this.missed} without an answer, +${growth} MiB`,
    };
  }

  /** A request that needs nothing, and one of Alice that needs the database. */
  private async sample(): Promise<void> {
    while (!this.stopped) {
      const pulse = await this.world.pulse();
      const answer = await this.alice();
      if (pulse === null || answer === null) {
        this.missed += 1;
      } else {
        this.times.push(pulse, answer);
        this.highest = Math.max(this.highest, residentBytes(this.world.service.pid));
      }
      // An attack that fails ends no watch, which must not keep this program alive.
      await wait(EVERY_MS, undefined, { ref: false });
    }
  }

  /** Milliseconds that Alice waits for her settings; null: she does not get them. */
  private async alice(): Promise<number | null> {
    const began = performance.now();
    try {
      const { status } = await this.world.alice.send('GET', '/api/settings');
      return status === 200 ? performance.now() - began : null;
    } catch {
      return null;
    }
  }
}

function quantile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Infinity;
}

/** What a process has in memory. */
function residentBytes(pid: number): number {
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}
