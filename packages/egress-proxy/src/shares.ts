/** Counts what each sandbox has of something that all share, up to a bound for each. */
export class Shares {
  private readonly taken = new Map<string, number>();

  constructor(readonly max: number) {}

  /** What all have together. */
  get total(): number {
    return [...this.taken.values()].reduce((sum, count) => sum + count, 0);
  }

  /** How many sandboxes have anything. */
  get size(): number {
    return this.taken.size;
  }

  /** False where the sandbox has all that it may have; what is taken must be released. */
  take(sandbox: string): boolean {
    const count = this.taken.get(sandbox) ?? 0;
    if (count >= this.max) {
      return false;
    }
    this.taken.set(sandbox, count + 1);
    return true;
  }

  release(sandbox: string): void {
    const count = this.taken.get(sandbox) ?? 0;
    if (count > 1) {
      this.taken.set(sandbox, count - 1);
    } else {
      this.taken.delete(sandbox);
    }
  }
}
