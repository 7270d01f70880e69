import { readFileSync } from 'node:fs';

/**
 * How much longer than on a machine that has nothing else to do the main thread of a program needs for its work: it runs
 * for a part of the time in which it could. What the program does to itself, such as work that holds up all others,
 * changes nothing.
 */
export class Slowdown {
  private constructor(
    private readonly pid: number,
    private readonly before: { ran: number; waited: number },
  ) {}

  static since(pid: number): Slowdown {
    return new Slowdown(pid, processorTimes(pid) ?? { ran: 0, waited: 0 });
  }

  /** 1: nothing else ran instead of it since then. */
  get factor(): number {
    const now = processorTimes(this.pid);
    const ran = now === null ? 0 : now.ran - this.before.ran;
    return now === null || ran === 0 ? 1 : 1 + (now.waited - this.before.waited) / ran;
  }

  get seen(): string {
    return `at 1/${this.factor.toFixed(1)} of the machine's speed`;
  }
}

/** In nanoseconds; null when there is no such process. */
function processorTimes(pid: number): { ran: number; waited: number } | null {
  try {
    const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ').map(Number);
    return { ran, waited };
  } catch {
    return null;
  }
}
