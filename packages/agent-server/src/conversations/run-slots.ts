/**
 * Limits how many agents run at once; further runs queue in order of arrival. An aborted engine keeps its slot until
 * it ends, but a queued run leaves at once: p-queue frees both at once, and p-limit takes no signal.
 */
export class RunSlots {
  readonly #max: number;
  readonly #queue: (() => void)[] = [];
  #inUse = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Waits for a slot and returns the function that releases it; null if the signal aborted first. */
  async acquire(signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) {
      return null;
    }
    if (this.#inUse < this.#max) {
      this.#inUse += 1;
    } else if (!(await this.#wait(signal))) {
      return null;
    }
    return () => this.#release();
  }

  /** A released slot passes directly to the next in the queue, so that no newcomer can overtake. */
  #release(): void {
    const next = this.#queue.shift();
    if (next === undefined) {
      this.#inUse -= 1;
    } else {
      next();
    }
  }

  async #wait(signal: AbortSignal): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const enter = (): void => {
        signal.removeEventListener('abort', leave);
        resolve(true);
      };
      const leave = (): void => {
        const index = this.#queue.indexOf(enter);
        if (index !== -1) {
          this.#queue.splice(index, 1);
          resolve(false);
        }
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#queue.push(enter);
    });
  }
}
