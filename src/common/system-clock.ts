import { Clock } from './clock.js';

/** The machine's clock. */
export class SystemClock extends Clock {
  now(): number {
    return Date.now();
  }
}
