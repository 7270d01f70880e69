import { Clock } from '../../src/common/clock.js';

/** A clock that follows the machine's, and can be moved ahead. */
export class ManualClock extends Clock {
  private ahead = 0;

  now(): number {
    return Date.now() + this.ahead;
  }

  advance(milliseconds: number): void {
    this.ahead += milliseconds;
  }
}
