import { createHash } from 'node:crypto';
import { InvalidInputError } from '../errors/problem-error.js';

export interface Page<T> {
  items: T[];
  nextPageId: string | null;
}

export interface PageRequest {
  page_id?: string;
  limit: number;
}

const SEAL_BYTES = 6;

/** Cuts `limit + 1` rows to a page of `list`; `found` counts rows, if a bound in bytes cut them. */
export function toPage<T>(
  list: string,
  rows: T[],
  limit: number,
  cursor: (row: T) => string,
  found = rows.length,
): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const hasMore = found > items.length && last !== undefined;
  return { items, nextPageId: hasMore ? encodePageId(list, cursor(last)) : null };
}

export function encodePageId(list: string, cursor: string): string {
  return Buffer.concat([seal(list, cursor), Buffer.from(cursor, 'utf8')]).toString('base64url');
}

/** Null: the first page. @throws InvalidInputError when the id is not the `next_page_id` of a page of this list */
export function parsePageId<T>(
  list: string,
  pageId: string | undefined,
  parse: (cursor: string) => T | null,
): T | null {
  if (pageId === undefined || pageId === '') {
    return null;
  }
  const cursor = Buffer.from(pageId, 'base64url').subarray(SEAL_BYTES).toString('utf8');
  // Only ids made here are accepted: no other spelling, no other list's.
  const start = encodePageId(list, cursor) === pageId && !cursor.includes('\0') ? parse(cursor) : null;
  if (start === null) {
    throw new InvalidInputError({
      loc: ['query', 'page_id'],
      msg: 'Expected the next_page_id of a page of this list, or none for the first page.',
      type: 'value_error',
    });
  }
  return start;
}

function seal(list: string, cursor: string): Buffer {
  return createHash('sha256').update(`${list}\n${cursor}`).digest().subarray(0, SEAL_BYTES);
}

/** Cuts a page out of a list that is in memory as a whole. */
export function pageOfAll<T>(
  list: string,
  all: readonly T[],
  { page_id: pageId, limit }: PageRequest,
  idOf: (item: T) => string,
): Page<T> {
  const after = (id: string): number | null => all.findIndex((item) => idOf(item) === id) + 1 || null;
  const start = parsePageId(list, pageId, after) ?? 0;
  return toPage(list, all.slice(start, start + limit + 1), limit, idOf);
}

/** Clients that name rows get all of them or none. @throws InvalidInputError when only some fit a page */
export function requireAll(rows: readonly unknown[], found: number, parameter: string): void {
  if (rows.length < found) {
    throw new InvalidInputError({
      loc: ['query', parameter],
      msg: `Expected fewer at a time: only the first ${rows.length} of these are not larger than a response may be.`,
      type: 'too_long',
    });
  }
}

export function parseNumberCursor(max: number): (text: string) => number | null {
  return (text) => (/^(0|[1-9]\d{0,9})$/.test(text) && Number(text) <= max ? Number(text) : null);
}

/** Cursor of lists ordered by time, then by id; `at` is ISO 8601 in UTC with PostgreSQL's microseconds. */
interface TimeCursor {
  at: string;
  id: string;
}

const CURSOR = /^((\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3})\d{3}Z) ([0-9A-Za-z-]+)$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function formatTimeCursor({ at, id }: TimeCursor): string {
  return `${at} ${id}`;
}

/** Parses a cursor, which clients may have made up. */
export function parseTimeCursor(text: string, isId = (id: string) => UUID.test(id)): TimeCursor | null {
  const [, at, upToMilliseconds = '', id = ''] = CURSOR.exec(text) ?? [];
  if (at === undefined || !isId(id) || upToMilliseconds < '0001') {
    return null;
  }
  const date = new Date(`${upToMilliseconds}Z`);
  // `Date` reads 31 February as 3 March; PostgreSQL refuses it.
  return !Number.isNaN(date.getTime()) && date.toISOString() === `${upToMilliseconds}Z` ? { at, id } : null;
}
