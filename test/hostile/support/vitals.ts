import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { HostileWorld } from './hostile-world.js';

const EVERY_MS = 50;
const MIB = 1024 * 1024;
/** What others may notice at most on a machine that also runs the attack. */
const MAX_PULSE_MS = 5_000;

/** How a service does while it is attacked: how fast it answers others, and what memory it takes. */
export class Vitals {
  private slowest = 0;
  private missed = 0;
  private stopped = false;
  private readonly before: number;
  private highest: number;
  private readonly sampling: Promise<void>;

  private constructor(private readonly world: HostileWorld) {
    this.before = residentMemory(world.service.pid);
    this.highest = this.before;
    this.sampling = this.sample();
  }

  static watch(world: HostileWorld): Vitals {
    return new Vitals(world);
  }

  /** Ends the watch. `seen`: the slowest answer to anybody, and how much memory the service took meanwhile. */
  async end(maxGrowthMib: number): Promise<{ held: boolean; seen: string }> {
    this.stopped = true;
    await this.sampling;
    const growth = Math.round((this.highest - this.before) / MIB);
    return {
      held: this.missed === 0 && this.slowest < MAX_PULSE_MS && growth < maxGrowthMib,
      seen: `others waited at most ${Math.round(this.slowest)} ms, ${this.missed} without an answer, +${growth} MiB`,
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
        this.slowest = Math.max(this.slowest, pulse, answer);
        this.highest = Math.max(this.highest, residentMemory(this.world.service.pid));
      }
      await wait(EVERY_MS);
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

/** Bytes. */
function residentMemory(pid: number): number {
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}
