export type Release = () => void;
/** The share of the holder, or the whole limit. */
export type Exhausted = 'share' | 'whole';

/** A number of places of which each holder may have only a share at a time. */
export class SharedLimit {
  private readonly held = new Map<string, number>();
  private sum = 0;

  constructor(
    readonly whole: number,
    readonly share: number,
  ) {}

  get inUse(): number {
    return this.sum;
  }

  heldBy(holder: string): number {
    return this.held.get(holder) ?? 0;
  }

  take(holder: string, share = this.share): Release | Exhausted {
    if (this.heldBy(holder) >= share) {
      return 'share';
    }
    if (this.sum >= this.whole) {
      return 'whole';
    }
    this.add(holder, 1);
    let isHeld = true;
    return () => {
      if (isHeld) {
        isHeld = false;
        this.add(holder, -1);
      }
    };
  }

  private add(holder: string, change: 1 | -1): void {
    this.sum += change;
    const held = this.heldBy(holder) + change;
    if (held === 0) {
      this.held.delete(holder);
    } else {
      this.held.set(holder, held);
    }
  }
}
