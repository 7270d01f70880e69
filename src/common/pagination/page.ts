/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** Opaque; null on the last page. */
  nextPageId: string | null;
}

/** Cuts `limit + 1` rows to a page. The id of the next page comes from the last row of this one. */
export function toPage<T>(rows: T[], limit: number, cursor: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return { items, nextPageId: hasMore ? Buffer.from(cursor(last), 'utf8').toString('base64url') : null };
}

/** The cursor in a page id; null, which means the first page, when it is missing or invalid. */
export function decodePageId(pageId: string | undefined): string | null {
  if (pageId === undefined || !/^[A-Za-z0-9_-]{1,1024}$/.test(pageId)) {
    return null;
  }
  const text = Buffer.from(pageId, 'base64url').toString('utf8');
  return Buffer.from(text, 'utf8').toString('base64url') === pageId && !text.includes('\0') ? text : null;
}

/** Where a page begins in a list that is ordered by time and, at the same time, by id. */
interface TimeCursor {
  /** ISO 8601 in UTC with microseconds, PostgreSQL's precision. */
  at: string;
  /** UUID with dashes. */
  id: string;
}

const CURSOR =
  /^((\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3})\d{3}Z) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

export function formatTimeCursor({ at, id }: TimeCursor): string {
  return `${at} ${id}`;
}

/** Parses a cursor; null when the text, which clients may have changed, is not one. */
export function parseTimeCursor(text: string | null): TimeCursor | null {
  const [, at, upToMilliseconds = '', id] = CURSOR.exec(text ?? '') ?? [];
  if (at === undefined || id === undefined || upToMilliseconds < '0001') {
    return null;
  }
  const date = new Date(`${upToMilliseconds}Z`);
  // `Date` reads 31 February as 3 March; PostgreSQL refuses it.
  return !Number.isNaN(date.getTime()) && date.toISOString() === `${upToMilliseconds}Z` ? { at, id } : null;
}
