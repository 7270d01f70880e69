import { Clock } from '../../src/common/clock.js';

/** A clock that follows the machine's, and can be moved ahead and stopped. */
export class ManualClock extends Clock {
  private ahead = 0;
  private stoppedAt: number | null = null;

  now(): number {
    return (this.stoppedAt ?? Date.now()) + this.ahead;
  }

  /** From now on time passes by `advance` alone, however long the machine takes for what a test does meanwhile. */
  stop(): void {
    this.stoppedAt ??= Date.now();
  }

  /** Follows the machine's clock again, from where it stands. */
  resume(): void {
    this.ahead -= this.stoppedAt === null ? 0 : Date.now() - this.stoppedAt;
    this.stoppedAt = null;
  }

  advance(milliseconds: number): void {
    this.ahead += milliseconds;
  }
}
