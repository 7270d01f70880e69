import { setTimeout as delay } from 'node:timers/promises';

/** The current time: the database's in the service, a chosen one in tests. */
export abstract class Clock {
  private readonly onSet: (() => void)[] = [];

  abstract now(): number;

  /** What waits for a time looks again when the clock was set, as that time may have come. */
  whenSet(listener: () => void): void {
    this.onSet.push(listener);
  }

  protected tellSet(): void {
    this.onSet.forEach((listener) => listener());
  }

  /** Lets time pass in which other programs do what they do at intervals. */
  async wait(milliseconds: number): Promise<void> {
    await delay(milliseconds);
  }
}

/** Returns null for a day that does not exist, which `Date` would take for a later one, and for years without four digits. */
function parseTime(text: string, day: string): Date | null {
  const date = new Date(text);
  const year = date.getUTCFullYear();
  const isReal = new Date(day).toJSON()?.startsWith(day) && year >= 1 && year <= 9999;
  return isReal ? date : null;
}

const TIME_FORMAT =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?$/i;

/**
 * Converts to UTC with microseconds, which a `Date` would lose. A time without a zone is UTC, a day its midnight. Returns
 * null when invalid.
 */
export function toInstant(text: string): string | null {
  // A plus sign that was not escaped in an address arrives as a blank.
  const [, day = '', minutes = '00:00', seconds = ':00', fraction = '', zone = 'Z'] =
    TIME_FORMAT.exec(text.trim().replace(/(:\d\d(?:\.\d+)?) (\d\d:?\d\d)$/, '$1+$2')) ?? [];
  const offset = zone
    .toUpperCase()
    .replace(/^([+-]\d\d)(?::?(\d\d))?$/, (_all, hours, rest = '00') => `${hours}:${rest}`);
  const date = parseTime(`${day}T${minutes}${seconds}${offset}`, day);
  return date && `${date.toISOString().slice(0, 19)}.${fraction.padEnd(6, '0').slice(0, 6)}Z`;
}

/** The machine's clock, for short-lived commands. */
export class SystemClock extends Clock {
  now(): number {
    return Date.now();
  }
}
