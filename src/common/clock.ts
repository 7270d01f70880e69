/** The time, as a port: tests choose it. */
export abstract class Clock {
  /** Epoch milliseconds. */
  abstract now(): number;
}
