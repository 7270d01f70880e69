interface Waiting {
  take: () => void;
}

/** How many agents may work at the same time; the others wait in the order they came. */
export class RunPlaces {
  readonly #max: number;
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Waits for a place.
   *
   * @returns what gives the place back; null when the signal aborted first
   */
  async take(signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) {
      return null;
    }
    if (this.#taken < this.#max) {
      this.#taken += 1;
    } else if (!(await this.#wait(signal))) {
      return null;
    }
    return () => this.#giveBack();
  }

  /** A place is handed over as it is: a newcomer cannot slip in between. */
  #giveBack(): void {
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#taken -= 1;
    } else {
      next.take();
    }
  }

  async #wait(signal: AbortSignal): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const settle = (taken: boolean): void => {
        signal.removeEventListener('abort', leave);
        resolve(taken);
      };
      const waiting = { take: () => settle(true) };
      const leave = (): void => {
        const index = this.#waiting.indexOf(waiting);
        if (index !== -1) {
          this.#waiting.splice(index, 1);
          settle(false);
        }
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiting);
    });
  }
}
