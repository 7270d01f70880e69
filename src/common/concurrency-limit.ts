/** Lets at most `max` tasks run at the same time; the others wait in the order they came. */
export class ConcurrencyLimit {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly max: number;

  constructor(max: number) {
    this.max = max;
  }

  /** Runs the task as soon as there is room, and settles as the task does. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.running < this.max) {
      this.running += 1;
    } else {
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
      });
    }
    try {
      return await task();
    } finally {
      const next = this.waiting.shift();
      if (next) {
        // The place is handed over as it is: a newcomer cannot slip in between.
        next();
      } else {
        this.running -= 1;
      }
    }
  }
}
