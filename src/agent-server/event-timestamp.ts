/**
 * Timestamp of the next entry of a log: now, but later than the entry before it, so that time and order agree.
 *
 * @param now milliseconds since 1970
 * @returns ISO 8601, UTC, microseconds, no zone; always the same length, so that texts compare as times do
 */
export function nextTimestamp(previous: string | undefined, now: number): string {
  const current = format(now * 1000);
  return previous === undefined || current > previous ? current : format(toMicroseconds(previous) + 1);
}

/** The same form for a time that a client gave; null when it is none. A time without zone is UTC. */
export function normalizeTimestamp(text: string): string | null {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/i.exec(
    text.replace(' ', 'T'),
  );
  const [, seconds, fraction = '', zone = 'Z'] = match ?? [];
  const milliseconds = Date.parse(`${seconds}${zone.replace(/(\d\d)(\d\d)$/, '$1:$2')}`);
  if (Number.isNaN(milliseconds)) {
    return null;
  }
  return format(milliseconds * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6)));
}

function format(microseconds: number): string {
  const milliseconds = Math.floor(microseconds / 1000);
  const rest = String(microseconds % 1000).padStart(3, '0');
  return new Date(milliseconds).toISOString().replace('Z', rest);
}

function toMicroseconds(timestamp: string): number {
  return Date.parse(`${timestamp.slice(0, 23)}Z`) * 1000 + Number(timestamp.slice(23));
}
