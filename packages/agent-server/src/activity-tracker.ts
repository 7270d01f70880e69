/** Measures how long the server has been idle. Requests that only read state do not count as activity. */
export class ActivityTracker {
  readonly #startedAt = performance.now();
  readonly #isBusy: () => boolean;
  #last = this.#startedAt;

  constructor(isBusy: () => boolean) {
    this.#isBusy = isBusy;
  }

  touch(): void {
    this.#last = performance.now();
  }

  uptimeSeconds(): number {
    return (performance.now() - this.#startedAt) / 1000;
  }

  idleSeconds(): number {
    if (this.#isBusy()) {
      this.touch();
    }
    return (performance.now() - this.#last) / 1000;
  }
}
