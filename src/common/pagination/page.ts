/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** Opaque; null on the last page. */
  nextPageId: string | null;
}

/** Cuts `limit + 1` rows to a page; the id of the next one is made from the last row kept. */
export function toPage<T>(rows: T[], limit: number, cursor: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items, nextPageId: more ? Buffer.from(cursor(last), 'utf8').toString('base64url') : null };
}

/** The cursor inside a page id; null (the first page) when there is none or it is garbage. */
export function decodePageId(pageId: string | undefined): string | null {
  if (pageId === undefined || !/^[A-Za-z0-9_-]{1,1024}$/.test(pageId)) {
    return null;
  }
  const text = Buffer.from(pageId, 'base64url').toString('utf8');
  return Buffer.from(text, 'utf8').toString('base64url') === pageId && !text.includes('\0') ? text : null;
}
