const FORM = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/**
 * A time as clients and agent servers write it, in UTC and with microseconds, which a `Date` would lose:
 * `2026-01-31T12:00:00.123456Z`. A time without a zone is UTC. Null when it is no time.
 */
export function toInstant(text: string): string | null {
  // A plus sign that was not escaped in an address arrives as a blank.
  const [, day, minutes, seconds = ':00', fraction = '', zone = 'Z'] =
    FORM.exec(text.trim().replace(/(:\d\d(?:\.\d+)?) (\d\d:?\d\d)$/, '$1+$2')) ?? [];
  const offset = zone
    .toUpperCase()
    .replace(/^([+-]\d\d)(?::?(\d\d))?$/, (_all, hours, rest = '00') => `${hours}:${rest}`);
  const date = new Date(`${day}T${minutes}${seconds}${offset}`);
  const year = date.getUTCFullYear();
  // `Date` reads 31 February as 3 March; with the day's own offset it is what was written.
  const written = new Date(`${day}T00:00:00Z`);
  if (
    !(year >= 1 && year <= 9999) ||
    Number.isNaN(written.getTime()) ||
    written.toISOString().slice(0, 10) !== day
  ) {
    return null;
  }
  return `${date.toISOString().slice(0, 19)}.${fraction.padEnd(6, '0').slice(0, 6)}Z`;
}
