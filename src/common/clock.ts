/** In the service the database's time, in tests a chosen one. */
export abstract class Clock {
  abstract now(): number;
}

/** Null for a day that there is not, which `Date` takes for a later one, and for years without four digits. */
export function parseTime(text: string, day: string): Date | null {
  const date = new Date(text);
  const year = date.getUTCFullYear();
  const isReal = new Date(day).toJSON()?.startsWith(day) && year >= 1 && year <= 9999;
  return isReal ? date : null;
}

/** For commands that last a moment. */
export class SystemClock extends Clock {
  now(): number {
    return Date.now();
  }
}
