/** The time, as a port: that of the database in the service, and what tests choose. */
export abstract class Clock {
  /** Epoch milliseconds. */
  abstract now(): number;
}

/** The machine's own, for commands that last a moment. */
export class SystemClock extends Clock {
  now(): number {
    return Date.now();
  }
}
