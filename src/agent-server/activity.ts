/** When something last happened here; looking at state is not something. */
export class Activity {
  readonly #startedAt = performance.now();
  readonly #isBusy: () => boolean;
  #last = this.#startedAt;

  /** @param isBusy whether something runs at this moment */
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
