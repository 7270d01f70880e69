/** Those who have not said who they are; of too many, the oldest of the place that has the most goes. */
export class Strangers<T> {
  /** Where each comes from, oldest first. */
  private readonly places = new Map<T, string>();

  constructor(
    private readonly max: number,
    private readonly end: (one: T) => void,
  ) {}

  get size(): number {
    return this.places.size;
  }

  add(one: T, place: string): void {
    this.places.set(one, place);
    if (this.size > this.max) {
      const counts = new Map<string, number>();
      this.places.forEach((each) => counts.set(each, (counts.get(each) ?? 0) + 1));
      const most = Math.max(...counts.values());
      for (const [other, from] of this.places) {
        if (counts.get(from) === most) {
          this.delete(other);
          this.end(other);
          return;
        }
      }
    }
  }

  delete(one: T): void {
    this.places.delete(one);
  }
}

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
