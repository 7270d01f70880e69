/** A request that failed, and was not under way during a fault. */
export interface Failure {
  what: string;
  reason: string;
  /** Seconds since the load began. */
  at: number;
}

/** Counts what clients saw. */
export class Tally {
  readonly failures: Failure[] = [];
  requests = 0;
  /** Requests under way during a fault (a replica was killed, the database was away), and lost with it. */
  lostAtFaults = 0;
  /** Connections that were refused, so that the client tried again; nothing had been sent. */
  refused = 0;
  readonly #begun = performance.now();
  readonly #faults: { from: number; to: number }[] = [];
  readonly #byKind = new Map<string, number>();

  /** Does damage: what is under way meanwhile may be lost. It lasts until the work is done. */
  async duringFault(work: () => Promise<void>): Promise<void> {
    const span = { from: performance.now(), to: Infinity };
    this.#faults.push(span);
    await work();
    span.to = performance.now();
  }

  /** How often damage was done. */
  get faults(): number {
    return this.#faults.length;
  }

  /** When the last damage was undone; Infinity while some is done, 0 before any. As `performance.now()`. */
  get undamagedSince(): number {
    return Math.max(0, ...this.#faults.map(({ to }) => to));
  }

  /** @param what the kind of request */
  begin(what: string): number {
    this.requests += 1;
    this.#byKind.set(what, (this.#byKind.get(what) ?? 0) + 1);
    return performance.now();
  }

  /**
   * @param startedAt what `begin` returned
   * @returns whether it was under way during a fault
   */
  fail(what: string, startedAt: number, reason: string): boolean {
    const now = performance.now();
    const isLost = this.#faults.some(({ from, to }) => startedAt <= to && from <= now);
    if (isLost) {
      this.lostAtFaults += 1;
    } else {
      this.failures.push({ what, reason, at: Math.round((startedAt - this.#begun) / 100) / 10 });
    }
    return isLost;
  }

  get seconds(): number {
    return (performance.now() - this.#begun) / 1000;
  }

  /** `settings 1200, tasks 600 …`. */
  get kinds(): string {
    return [...this.#byKind].map(([what, count]) => `${what} ${count}`).join(', ');
  }
}
