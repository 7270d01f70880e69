/** A sleep that somebody else can end, also before it has begun. */
export class Wakeup {
  private isAwake = false;
  private isOver = false;
  private resolve: (() => void) | null = null;

  /** The next (or current) wait is over at once. */
  wake(): void {
    this.isAwake = true;
    this.resolve?.();
  }

  /** Every wait is over, and there is nothing more to wait for. */
  end(): void {
    this.isOver = true;
    this.wake();
  }

  /**
   * Waits until woken, at most for so long.
   *
   * @returns whether to go on
   */
  async wait(mostMs: number): Promise<boolean> {
    if (!this.isAwake && !this.isOver) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, mostMs);
        this.resolve = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.resolve = null;
    this.isAwake = false;
    return !this.isOver;
  }
}
