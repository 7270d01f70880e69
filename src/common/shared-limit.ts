/** Gives a place back; further calls do nothing. */
export type Release = () => void;
/** What is used up: the share of the holder, or the whole limit. */
export type Exhausted = 'share' | 'whole';

/** A number of places that many holders use, of which each may have only a share at a time. */
export class SharedLimit {
  private readonly held = new Map<string, number>();
  private sum = 0;

  /**
   * @param whole places in all
   * @param share places of one holder
   */
  constructor(
    readonly whole: number,
    readonly share: number,
  ) {}

  /** Places in use. */
  get inUse(): number {
    return this.sum;
  }

  /** Places that a holder has. */
  heldBy(holder: string): number {
    return this.held.get(holder) ?? 0;
  }

  /**
   * Takes a place.
   *
   * @param share places that this holder may have, if not as many as others
   * @returns what gives the place back, or what is used up
   */
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
