import { setImmediate } from 'node:timers/promises';
import { Clock } from '@slipway/common/clock.js';

/** A clock that follows the machine's, and can be moved ahead and stopped. */
export class ManualClock extends Clock {
  private ahead = 0;
  private stoppedAt: number | null = null;
  /** How long was waited, in milliseconds: the programs that it is for are not there. */
  readonly waits: number[] = [];

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

  override async wait(milliseconds: number): Promise<void> {
    this.waits.push(milliseconds);
    await setImmediate();
  }

  advance(milliseconds: number): void {
    this.ahead += milliseconds;
    this.tellSet();
  }
}
