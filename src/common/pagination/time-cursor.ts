/** Where a page begins in a list that is ordered by a moment and, among equals, by id. */
export interface TimeCursor {
  /** ISO 8601 in UTC with microseconds, which is what PostgreSQL keeps. */
  at: string;
  /** UUID with dashes. */
  id: string;
}

const CURSOR =
  /^((\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3})\d{3}Z) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** The text of a cursor. */
export function formatTimeCursor({ at, id }: TimeCursor): string {
  return `${at} ${id}`;
}

/** The cursor that a text holds; null for one that is none, whatever a client made of it. */
export function parseTimeCursor(text: string | null): TimeCursor | null {
  const [, at, upToMilliseconds = '', id] = CURSOR.exec(text ?? '') ?? [];
  if (at === undefined || id === undefined || upToMilliseconds < '0001') {
    return null;
  }
  const date = new Date(`${upToMilliseconds}Z`);
  // `Date` reads 31 February as 3 March, PostgreSQL refuses it.
  return !Number.isNaN(date.getTime()) && date.toISOString() === `${upToMilliseconds}Z` ? { at, id } : null;
}
