/** In the service the database's time, in tests a chosen one. */
export abstract class Clock {
  abstract now(): number;
}

/** For commands that last a moment. */
export class SystemClock extends Clock {
  now(): number {
    return Date.now();
  }
}
