import type { EventIdentity, EventLog } from './event-log.js';

export interface LogSearch<E> {
  matches: (entry: E) => boolean;
  /** Id of the entry to begin with; anything unknown means the first page. */
  pageId: string | undefined;
  limit: number;
  descending: boolean;
}

export interface LogPage<E> {
  items: E[];
  next_page_id: string | null;
}

/** One page of the matching entries. */
export function searchLog<E extends EventIdentity>(log: EventLog<E>, search: LogSearch<E>): LogPage<E> {
  const { entries } = log;
  const step = search.descending ? -1 : 1;
  const first = search.descending ? entries.length - 1 : 0;
  const named = search.pageId === undefined ? -1 : log.positionOf(search.pageId);
  const items: E[] = [];
  for (let position = named === -1 ? first : named; ; position += step) {
    const entry = entries[position];
    if (entry === undefined) {
      return { items, next_page_id: null };
    }
    if (search.matches(entry)) {
      if (items.length === search.limit) {
        return { items, next_page_id: entry.id };
      }
      items.push(entry);
    }
  }
}
